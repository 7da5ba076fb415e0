/** One `/withdraw` that reached the gateway, accepted or not. */
export interface Arrival {
  /** Milliseconds on the sandbox's monotonic clock, taken when the request was received completely. */
  readonly atMs: number;
  /** Milliseconds since the previous arrival; null for the first. */
  readonly gapMs: number | null;
  readonly addressTo: string | null;
  readonly amount: string | null;
}

/** When the withdrawals of one account arrived, and how close together. */
export class ArrivalLog {
  readonly #arrivals: Arrival[] = [];
  #smallestGapMs: number | null = null;

  record(atMs: number, payment: { addressTo: string | null; amount: string | null }): Arrival {
    const previous = this.#arrivals.at(-1);
    const gapMs = previous === undefined ? null : atMs - previous.atMs;
    const arrival = { atMs, gapMs, addressTo: payment.addressTo, amount: payment.amount };
    this.#arrivals.push(arrival);
    if (gapMs !== null) this.#smallestGapMs = Math.min(gapMs, this.#smallestGapMs ?? gapMs);
    return arrival;
  }

  get all(): readonly Arrival[] {
    return this.#arrivals;
  }

  get smallestGapMs(): number | null {
    return this.#smallestGapMs;
  }

  get meanGapMs(): number | null {
    const [first, last] = [this.#arrivals.at(0), this.#arrivals.at(-1)];
    if (first === undefined || last === undefined || this.#arrivals.length < 2) return null;
    return (last.atMs - first.atMs) / (this.#arrivals.length - 1);
  }
}
