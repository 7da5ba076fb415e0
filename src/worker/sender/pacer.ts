import { type Clock, isAborted, onAnyClock } from '../../base/clock.js';
import type { AccountSettings } from '../../base/settings.js';
import type { WithdrawConnection } from '../../gateway/gateway.js';
import { type SendReport, toNotSent } from './send-report.js';

/**
 * The set interval, but at least what the gateway's limit takes on any clock.
 * @param minWithdrawGapMs - on the gateway's own clock
 */
export function keptIntervalMs(intervalMs: number, minWithdrawGapMs: number): number {
  return Math.max(intervalMs, Math.ceil(onAnyClock(minWithdrawGapMs)));
}

/** `intervalMs` from a response to the next send; a request that was reset may be on its way for `inFlightMaxMs`. */
export type Pace = Pick<AccountSettings, 'intervalMs' | 'inFlightMaxMs'>;

/** A hold may end before its time. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Says when the next withdraw may be written. Uses a monotonic clock only, and never moves the time back.
 * A request arrives between its write and its response. Written `intervalMs` after the previous response, it arrives at
 * least `intervalMs` after its predecessor, whatever the network does.
 */
export class Pacer {
  readonly #clock: Clock;
  readonly #pace: Pace;
  #openAt = Number.NEGATIVE_INFINITY;
  #arrivesUntil = (): number => Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, pace: Pace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  /** On the clock's own scale. */
  get openAt(): number {
    return Math.max(this.#openAt, this.#arrivesUntil());
  }

  get isOpen(): boolean {
    return this.#clock.now() >= this.openAt;
  }

  /** @param arrivesUntil - when a request of an earlier sender can no longer arrive, on the clock's scale; it may fall */
  holdWhile(arrivesUntil: () => number): void {
    this.#arrivesUntil = arrivesUntil;
  }

  /** Never shortens an earlier hold. */
  holdUntil(time: number): void {
    this.#openAt = Math.max(this.#openAt, time);
  }

  /** Call it after the complete response: the request has arrived. */
  afterResponse(): void {
    this.holdUntil(this.#clock.now() + this.#pace.intervalMs);
  }

  /**
   * Call it after the reset: the network may still have the request. A gateway that stood still may read it at the end of
   * this wait, so a probe and one interval follow.
   */
  afterNoResponse(): void {
    this.holdUntil(this.#clock.now() + onAnyClock(this.#pace.inFlightMaxMs));
  }

  /** Resolves `leadMs` before the slot opens, or on abort. Timers may fire early, hence the loop. */
  async waitUntilOpen(signal: AbortSignal, leadMs = 0): Promise<void> {
    for (;;) {
      const remainingMs = this.openAt - leadMs - this.#clock.now();
      if (remainingMs <= 0 || signal.aborted) return;
      await this.#clock.sleep(Math.min(remainingMs, LOOK_AGAIN_MS), signal);
    }
  }
}

/** Early enough to be ready, late enough not to be closed as idle. */
const CONNECT_LEAD_MS = 1_000;

/** Ledger and journal are written before the slot opens, to keep the pace. */
const BEGIN_LEAD_MS = 30;

export async function connectInTime(
  pacer: Pacer,
  open: (signal: AbortSignal) => Promise<WithdrawConnection>,
  stop: AbortSignal,
): Promise<WithdrawConnection | Extract<SendReport, { kind: 'stopped' | 'not_sent' }>> {
  for (;;) {
    await pacer.waitUntilOpen(stop, CONNECT_LEAD_MS);
    if (isAborted(stop)) return { kind: 'stopped' };
    let connection: WithdrawConnection;
    try {
      connection = await open(stop);
    } catch (error) {
      if (isAborted(stop)) return { kind: 'stopped' };
      return toNotSent(error);
    }
    const hadToWait = !pacer.isOpen;
    await pacer.waitUntilOpen(stop, BEGIN_LEAD_MS);
    if (!isAborted(stop) && connection.usable) return connection;
    connection.close();
    if (isAborted(stop)) return { kind: 'stopped' };
    // A connection that ended while it waited is opened again; one that ends at once is a fault of the gateway.
    if (!hadToWait) {
      const reason = 'the gateway ended the connection before it was used';
      return { kind: 'not_sent', reason, code: 'GATEWAY_UNAVAILABLE' };
    }
  }
}
