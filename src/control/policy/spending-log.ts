export interface LoggedSpend {
  readonly bucket: Bucket;
  readonly value: bigint;
  answeredAt: number | undefined;
  place: number;
  isReleased: boolean;
}

/** A window's position in a bucket. `head` is the place of the oldest spend that counts. */
interface Cursor {
  readonly withinMs: number;
  sum: bigint;
  head: number;
}

/** `first` is the place of the first answered spend. */
interface Bucket {
  openSum: bigint;
  answered: LoggedSpend[];
  first: number;
  /** The longest window: older spends are forgotten. */
  readonly longest: Cursor;
  readonly shorter: Map<number, Cursor>;
}

/** The most expired spends kept at the front of a bucket. */
const SLACK = 1_024;

/**
 * An exact log of spends by bucket (an address, a signer, or everything). Windows of any length up to the longest share
 * the spends.
 *
 * A send counts from its begin until the window's length after its answer. It arrives at the gateway in between, at an
 * unknown time. So the arrivals in any window stay below the limit. Counting from the begin, or by calendar hours or
 * days, would allow twice as much.
 *
 * Times are monotonic, ms. The cost of a decision does not depend on the number of spends.
 */
export class SpendingLog {
  readonly #longestMs: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  begin(bucket: string, value: bigint): LoggedSpend {
    const found = this.#bucket(bucket);
    found.openSum += value;
    found.longest.sum += value;
    for (const cursor of found.shorter.values()) cursor.sum += value;
    return { bucket: found, value, answeredAt: undefined, place: Infinity, isReleased: false };
  }

  /**
   * Call it when the answer has come, or can no longer come. From then on the send expires.
   * @param at - monotonic, ms; never decreasing
   */
  answer(spend: LoggedSpend, at: number): void {
    if (spend.isReleased || spend.answeredAt !== undefined) return;
    const { bucket } = spend;
    spend.answeredAt = at;
    spend.place = bucket.first + bucket.answered.length;
    bucket.answered.push(spend);
    bucket.openSum -= spend.value;
  }

  release(spend: LoggedSpend): void {
    if (spend.isReleased) return;
    const { bucket, value, place } = spend;
    spend.isReleased = true;
    if (spend.answeredAt === undefined) bucket.openSum -= value;
    for (const cursor of [bucket.longest, ...bucket.shorter.values()]) if (place >= cursor.head) cursor.sum -= value;
  }

  *sums(withinMs: number, now: number): Generator<[bucket: string, sum: bigint]> {
    for (const name of this.#buckets.keys()) {
      const sum = this.sum(name, withinMs, now);
      if (sum > 0n) yield [name, sum];
    }
  }

  sum(bucket: string, withinMs: number, now: number): bigint {
    const found = this.#buckets.get(bucket);
    return found === undefined ? 0n : this.#look(found, withinMs, now).sum;
  }

  /**
   * When at most `most` counts, monotonic, ms; `now` if already so. Undefined if it depends on sends without an answer.
   */
  freeAt(bucket: string, withinMs: number, most: bigint, now: number): number | undefined {
    const found = this.#buckets.get(bucket);
    if (found === undefined) return most < 0n ? undefined : now;
    const cursor = this.#look(found, withinMs, now);
    if (cursor.sum <= most) return now;
    if (found.openSum > most) return undefined;
    let rest = cursor.sum;
    for (let place = cursor.head; rest > most; place += 1) {
      const spend = found.answered[place - found.first];
      if (spend?.answeredAt === undefined) return undefined;
      if (spend.isReleased) continue;
      rest -= spend.value;
      if (rest <= most) return spend.answeredAt + withinMs;
    }
    return undefined;
  }

  #look(bucket: Bucket, withinMs: number, now: number): Cursor {
    const cursor = this.#cursor(bucket, withinMs);
    this.#age(bucket, cursor, now);
    if (cursor !== bucket.longest) this.#age(bucket, bucket.longest, now);
    if (bucket.longest.head - bucket.first >= SLACK) this.#forget(bucket, now);
    return cursor;
  }

  #age(bucket: Bucket, cursor: Cursor, now: number): void {
    for (; ; cursor.head += 1) {
      const spend = bucket.answered[cursor.head - bucket.first];
      if (spend?.answeredAt === undefined) return;
      if (spend.isReleased) continue;
      if (spend.answeredAt + cursor.withinMs > now) return;
      cursor.sum -= spend.value;
    }
  }

  #forget(bucket: Bucket, now: number): void {
    // No cursor may point at a forgotten spend.
    for (const cursor of bucket.shorter.values()) this.#age(bucket, cursor, now);
    bucket.answered = bucket.answered.slice(bucket.longest.head - bucket.first);
    bucket.first = bucket.longest.head;
  }

  #cursor(bucket: Bucket, withinMs: number): Cursor {
    const { longest, shorter } = bucket;
    if (withinMs > longest.withinMs) throw new RangeError(`a window of ${withinMs} ms is longer than the longest`);
    if (withinMs === longest.withinMs) return longest;
    const found = shorter.get(withinMs) ?? { withinMs, sum: longest.sum, head: longest.head };
    shorter.set(withinMs, found);
    return found;
  }

  #bucket(name: string): Bucket {
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    const longest = { withinMs: this.#longestMs, sum: 0n, head: 0 };
    const bucket = { openSum: 0n, answered: [], first: 0, longest, shorter: new Map<number, Cursor>() };
    this.#buckets.set(name, bucket);
    return bucket;
  }
}
