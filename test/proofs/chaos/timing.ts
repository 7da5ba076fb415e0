import type { DelayRange } from '../../../src/sandbox/latency.js';

/** How long everything takes in a round, in ms of real time. */
export interface Timing {
  readonly name: 'scaled' | 'real';
  /** The workers' monotonic clocks run this many times faster than the machine's (see `under-chaos.mjs`). */
  readonly timeScale: number;
  /** The gateway's limit. */
  readonly minGapMs: number;
  readonly leaseMs: number;
  /** The quarantine where each host has a journal of its own: a worker that knows what Redis forgot objects within it. */
  readonly ownJournalQuarantineMs: number;
  readonly chaosMs: number;
  /** How long the gateway's process may be stopped. With the latency this stays far below IN_FLIGHT_MAX_MS (assumption A1). */
  readonly gatewayStopMaxMs: number;
  readonly latencyBeforeMs: DelayRange;
  readonly latencyAfterMs: DelayRange;
  readonly payouts: DelayRange;
  /** Settings of the workers. */
  readonly environment: Readonly<Record<string, string>>;
}

const COMMON = {
  GATEWAY_TIMEOUT_MS: '1000',
  STATUS_POLL_MIN_MS: '100',
  STATUS_POLL_MAX_MS: '500',
  STATUS_POLL_RATE: '100',
  HEALTH_PORT: '0',
  LOG_LEVEL: 'debug',
};

/**
 * An eighth of every time that is measured on the worker's clock: interval 126 ms, guard 125 ms, lease 500 ms, quarantine
 * 125 ms, in flight 1000 ms. The rules are the same, and a round takes seconds.
 */
export const SCALED: Timing = {
  name: 'scaled',
  timeScale: 8,
  minGapMs: 125,
  leaseMs: 500,
  ownJournalQuarantineMs: 24_000,
  chaosMs: 3_000,
  gatewayStopMaxMs: 300,
  latencyBeforeMs: { min: 0, max: 60 },
  latencyAfterMs: { min: 0, max: 40 },
  payouts: { min: 12, max: 18 },
  environment: {
    ...COMMON,
    LEASE_MS: '4000',
    TAKEOVER_QUARANTINE_MS: '1000',
    IN_FLIGHT_MAX_MS: '8000',
    WITHDRAW_TIMEOUT_MS: '600',
  },
};

/** The real interval of 1010 ms against the real limit of 1000 ms. */
export const REAL: Timing = {
  name: 'real',
  timeScale: 1,
  minGapMs: 1_000,
  leaseMs: 1_500,
  ownJournalQuarantineMs: 6_000,
  chaosMs: 9_000,
  gatewayStopMaxMs: 700,
  latencyBeforeMs: { min: 0, max: 300 },
  latencyAfterMs: { min: 20, max: 80 },
  payouts: { min: 9, max: 11 },
  environment: {
    ...COMMON,
    LEASE_MS: '1500',
    TAKEOVER_QUARANTINE_MS: '1000',
    IN_FLIGHT_MAX_MS: '2000',
    WITHDRAW_TIMEOUT_MS: '1500',
  },
};
