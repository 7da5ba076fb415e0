/** What one send counts for in a window. */
interface Spend {
  readonly id: string;
  readonly bucket: string;
  readonly value: bigint;
  /** When its answer came, monotonic ms; undefined while none did. */
  answeredAt: number | undefined;
  /** No longer counted: it is too old, or was proved not to have paid. */
  isOver: boolean;
}

interface Bucket {
  sum: bigint;
  /** Those whose answer came, the oldest first from `head` on. */
  answered: Spend[];
  head: number;
}

/** The most spends that are over and stand before the others of a bucket. */
const SLACK = 1_024;

/**
 * An exact log of what was spent in the last `withinMs`, by bucket (an address, a signer, or everything).
 *
 * A send counts from its begin until `withinMs` after its answer came: when it arrived at the gateway lies in between, and
 * nobody here knows when. Counted so, the arrivals of every `withinMs` together stay below what was allowed; counted from the
 * begin, or by hours or calendar days, they come to twice as much.
 *
 * Times are of one monotonic clock. A decision costs the same however many spends there are.
 */
export class SpendingWindow {
  readonly withinMs: number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #spends = new Map<string, Spend>();

  constructor(withinMs: number) {
    this.withinMs = withinMs;
  }

  /**
   * A send has begun: it counts from now on.
   * @param id - of the attempt; one that is known already is not counted twice
   */
  begin(id: string, bucket: string, value: bigint): void {
    if (this.#spends.has(id)) return;
    this.#spends.set(id, { id, bucket, value, answeredAt: undefined, isOver: false });
    this.#bucket(bucket).sum += value;
  }

  /**
   * The answer to a send has come, or it can come no more: from now on it grows old.
   * @param at - monotonic, ms; not before that of an earlier call
   */
  answer(id: string, at: number): void {
    const spend = this.#spends.get(id);
    if (spend === undefined || spend.answeredAt !== undefined) return;
    spend.answeredAt = at;
    this.#bucket(spend.bucket).answered.push(spend);
  }

  /** The send was proved not to have paid. */
  release(id: string): void {
    const spend = this.#spends.get(id);
    if (spend !== undefined) this.#end(spend);
  }

  /** The buckets in which something counts, with what. @param now - monotonic, ms */
  *sums(now: number): Generator<[bucket: string, sum: bigint]> {
    for (const name of this.#buckets.keys()) {
      const sum = this.sum(name, now);
      if (sum > 0n) yield [name, sum];
    }
  }

  /** What counts at this moment (monotonic, ms). */
  sum(bucket: string, now: number): bigint {
    const found = this.#buckets.get(bucket);
    if (found === undefined) return 0n;
    this.#age(found, now);
    return found.sum;
  }

  /**
   * When no more than `most` counts, monotonic, ms: `now` where that is so already; undefined where it depends on sends that
   * have no answer yet.
   */
  freeAt(bucket: string, most: bigint, now: number): number | undefined {
    let rest = this.sum(bucket, now);
    if (rest <= most) return now;
    const { answered, head } = this.#bucket(bucket);
    for (let index = head; index < answered.length; index += 1) {
      const spend = answered[index];
      if (spend?.answeredAt === undefined || spend.isOver) continue;
      rest -= spend.value;
      if (rest <= most) return spend.answeredAt + this.withinMs;
    }
    return undefined;
  }

  #age(bucket: Bucket, now: number): void {
    for (; bucket.head < bucket.answered.length; bucket.head += 1) {
      const spend = bucket.answered[bucket.head];
      if (spend?.answeredAt === undefined) continue;
      if (spend.answeredAt + this.withinMs > now) break;
      this.#end(spend);
    }
    if (bucket.head < SLACK) return;
    bucket.answered = bucket.answered.slice(bucket.head);
    bucket.head = 0;
  }

  #end(spend: Spend): void {
    if (spend.isOver) return;
    this.#spends.delete(spend.id);
    spend.isOver = true;
    this.#bucket(spend.bucket).sum -= spend.value;
  }

  #bucket(name: string): Bucket {
    const found = this.#buckets.get(name) ?? { sum: 0n, answered: [], head: 0 };
    this.#buckets.set(name, found);
    return found;
  }
}
