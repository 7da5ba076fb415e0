/** What one send counts for. Only its log changes it. */
export interface LoggedSpend {
  readonly bucket: Bucket;
  readonly value: bigint;
  /** When its answer came, monotonic ms; undefined while none did. */
  answeredAt: number | undefined;
  /** Its place among the answered ones of its bucket. */
  place: number;
  /** It was proved not to have paid. */
  isReleased: boolean;
}

/** How far one window has come in a bucket. */
interface Cursor {
  readonly withinMs: number;
  /** What counts in the window. */
  sum: bigint;
  /** The place of the oldest spend that counts. */
  head: number;
}

/** What is counted together. */
interface Bucket {
  /** What has no answer yet. */
  openSum: bigint;
  /** Those whose answer came, the oldest first. */
  answered: LoggedSpend[];
  /** The place of the first of them. */
  first: number;
  /** The longest window: what is too old for it is forgotten. */
  readonly longest: Cursor;
  /** The shorter windows that somebody has looked at. */
  readonly shorter: Map<number, Cursor>;
}

/** The most spends that are too old for every window and stand before the others of a bucket. */
const SLACK = 1_024;

/**
 * An exact log of what was spent, by bucket (an address, a signer, or everything), and what it comes to in windows of any
 * length up to the longest: they share the spends, and differ in how far they look back.
 *
 * A send counts from its begin until the window's length after its answer came: when it arrived at the gateway lies in between,
 * and nobody here knows when. Counted so, the arrivals of every window together stay below what was allowed; counted from the
 * begin, or by hours or calendar days, they come to twice as much.
 *
 * Times are of one monotonic clock. A decision costs the same however many spends there are.
 */
export class SpendingLog {
  readonly #longestMs: number;
  readonly #buckets = new Map<string, Bucket>();

  /** @param longestMs - the length of the longest window that is asked for */
  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** A send has begun: it counts from now on. */
  begin(bucket: string, value: bigint): LoggedSpend {
    const found = this.#bucket(bucket);
    found.openSum += value;
    found.longest.sum += value;
    for (const cursor of found.shorter.values()) cursor.sum += value;
    return { bucket: found, value, answeredAt: undefined, place: Infinity, isReleased: false };
  }

  /**
   * The answer to a send has come, or it can come no more: from now on it grows old.
   * @param at - monotonic, ms; not before that of an earlier call
   */
  answer(spend: LoggedSpend, at: number): void {
    if (spend.isReleased || spend.answeredAt !== undefined) return;
    const { bucket } = spend;
    spend.answeredAt = at;
    spend.place = bucket.first + bucket.answered.length;
    bucket.answered.push(spend);
    bucket.openSum -= spend.value;
  }

  /** The send was proved not to have paid. */
  release(spend: LoggedSpend): void {
    if (spend.isReleased) return;
    const { bucket, value, place } = spend;
    spend.isReleased = true;
    if (spend.answeredAt === undefined) bucket.openSum -= value;
    for (const cursor of [bucket.longest, ...bucket.shorter.values()]) if (place >= cursor.head) cursor.sum -= value;
  }

  /** The buckets in which something counts, with what. @param now - monotonic, ms */
  *sums(withinMs: number, now: number): Generator<[bucket: string, sum: bigint]> {
    for (const name of this.#buckets.keys()) {
      const sum = this.sum(name, withinMs, now);
      if (sum > 0n) yield [name, sum];
    }
  }

  /** What counts at this moment (monotonic, ms) in the window of this length. */
  sum(bucket: string, withinMs: number, now: number): bigint {
    const found = this.#buckets.get(bucket);
    return found === undefined ? 0n : this.#look(found, withinMs, now).sum;
  }

  /**
   * When no more than `most` counts, monotonic, ms: `now` where that is so already; undefined where it depends on sends that
   * have no answer yet.
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

  /** The window as it is now. */
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
    // None may stand at what is forgotten.
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
