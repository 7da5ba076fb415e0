import type { WithdrawOutcome } from '../gateway/withdraw-gateway.js';

/** What the worker tells whoever measures it. Times are in ms. Every method must return at once and not throw. */
export interface WorkerObserver {
  /** A withdraw came to an end. */
  sent(outcome: WithdrawOutcome['kind'], durationMs: number): void;
  /** Between two writes of one account, as this process made them. */
  sendGap(gapMs: number): void;
  /** How long a payout waited for its slot. */
  pacerWaited(waitedMs: number): void;
  journalSynced(durationMs: number): void;
  polled(result: 'in_progress' | 'completed' | 'failed' | 'error'): void;
}

/** Measures nothing. */
export const noObserver: WorkerObserver = {
  sent: () => undefined,
  sendGap: () => undefined,
  pacerWaited: () => undefined,
  journalSynced: () => undefined,
  polled: () => undefined,
};
