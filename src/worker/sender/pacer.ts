import { onAnyClock, type Clock } from '../../clock.js';

/**
 * The interval as it is kept, in ms: as it is set, but never less than the gateway's limit takes on any clock.
 * @param minWithdrawGapMs - the limit, in ms of the gateway's own clock
 */
export function keptIntervalMs(intervalMs: number, minWithdrawGapMs: number): number {
  return Math.max(intervalMs, Math.ceil(onAnyClock(minWithdrawGapMs)));
}

export interface PacerOptions {
  readonly clock: Clock;
  /** Between a response and the next send, in ms. */
  readonly intervalMs: number;
  /** For how long a request without a response may still be on its way to the gateway, in ms. */
  readonly inFlightMaxMs: number;
}

/**
 * Says when the next withdraw may be written. Only a monotonic clock counts, and only upwards.
 *
 * A request arrives after it was written and before its response. So one that is written `intervalMs` after the
 * previous response arrives at least `intervalMs` after its predecessor did, whatever the network does to either.
 */
export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #inFlightMaxMs: number;
  #openAt = Number.NEGATIVE_INFINITY;

  constructor({ clock, intervalMs, inFlightMaxMs }: PacerOptions) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#inFlightMaxMs = inFlightMaxMs;
  }

  /** The time from which a send is allowed, on the clock's own scale. */
  get openAt(): number {
    return this.#openAt;
  }

  get isOpen(): boolean {
    return this.#clock.now() >= this.#openAt;
  }

  /** Allows nothing before `time`. What was held longer stays held. */
  holdUntil(time: number): void {
    this.#openAt = Math.max(this.#openAt, time);
  }

  /** The gateway's own response has come in completely: the request has arrived. */
  afterResponse(): void {
    this.holdUntil(this.#clock.now() + this.#intervalMs);
  }

  /** The attempt ended without a response: its request may yet arrive. */
  afterNoResponse(): void {
    this.holdUntil(this.#clock.now() + onAnyClock(this.#inFlightMaxMs) + this.#intervalMs);
  }

  /** Resolves when the slot opens in less than `leadMs`, or the signal is aborted. Timers may fire early, hence the loop. */
  async waitUntilOpen(signal: AbortSignal, leadMs = 0): Promise<void> {
    for (;;) {
      const remainingMs = this.#openAt - leadMs - this.#clock.now();
      if (remainingMs <= 0 || signal.aborted) return;
      await this.#clock.sleep(remainingMs, signal);
    }
  }
}
