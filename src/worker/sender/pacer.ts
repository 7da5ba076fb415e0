import { onAnyClock, type Clock } from '../../clock.js';

/**
 * The set interval, but at least what the gateway's limit takes on any clock.
 * @param minWithdrawGapMs - on the gateway's own clock
 */
export function keptIntervalMs(intervalMs: number, minWithdrawGapMs: number): number {
  return Math.max(intervalMs, Math.ceil(onAnyClock(minWithdrawGapMs)));
}

export interface PacerOptions {
  readonly clock: Clock;
  /** Between a response and the next send. */
  readonly intervalMs: number;
  /** How long an unanswered request may still be on its way to the gateway. */
  readonly inFlightMaxMs: number;
}

/**
 * Says when the next withdraw may be written. Uses a monotonic clock only, and never moves the time back.
 * A request arrives between its write and its response. Written `intervalMs` after the previous response, it arrives at
 * least `intervalMs` after its predecessor, whatever the network does.
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

  /** On the clock's own scale. */
  get openAt(): number {
    return this.#openAt;
  }

  get isOpen(): boolean {
    return this.#clock.now() >= this.#openAt;
  }

  /** Never shortens an earlier hold. */
  holdUntil(time: number): void {
    this.#openAt = Math.max(this.#openAt, time);
  }

  /** Call it after the complete response: the request has arrived. */
  afterResponse(): void {
    this.holdUntil(this.#clock.now() + this.#intervalMs);
  }

  /** The request may still arrive. */
  afterNoResponse(): void {
    this.holdUntil(this.#clock.now() + onAnyClock(this.#inFlightMaxMs) + this.#intervalMs);
  }

  /** Resolves `leadMs` before the slot opens, or on abort. Timers may fire early, hence the loop. */
  async waitUntilOpen(signal: AbortSignal, leadMs = 0): Promise<void> {
    for (;;) {
      const remainingMs = this.#openAt - leadMs - this.#clock.now();
      if (remainingMs <= 0 || signal.aborted) return;
      await this.#clock.sleep(remainingMs, signal);
    }
  }
}
