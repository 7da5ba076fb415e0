import { type Clock, followSignals } from '../base/clock.js';

/** Over all accounts, so that a receiver that is down gets one request a second. In ms. */
const PROBE_EVERY_MS = 1_000;

/**
 * When the accounts of one receiver try again. While it is down they take turns, one a second, and the first delivery
 * ends the wait of all.
 */
export class RetryTurns {
  readonly #clock: Clock;
  #delivered = new AbortController();
  /** Monotonic ms. */
  #nextAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The receiver has taken a notification of an account. */
  delivered(): void {
    this.#nextAt = -Infinity;
    const before = this.#delivered;
    this.#delivered = new AbortController();
    before.abort();
  }

  /** Takes the next turn. @returns how long to wait for it, in ms */
  takeTurn(): number {
    const now = this.#clock.now();
    this.#nextAt = Math.max(now, this.#nextAt) + PROBE_EVERY_MS;
    return this.#nextAt - now;
  }

  /** Resolves after the time, after a delivery elsewhere, or once `stop` aborts; not before {@link PROBE_EVERY_MS}. */
  async wait(ms: number, stop: AbortSignal): Promise<void> {
    const turn = followSignals(this.#delivered.signal, stop);
    const leastMs = Math.min(ms, PROBE_EVERY_MS);
    await this.#clock.sleep(leastMs, stop);
    await this.#clock.sleep(ms - leastMs, turn.signal).finally(turn.end);
  }
}
