/**
 * The payouts that wait for room in one window, the first at the front, with what each takes. What those take that stand
 * before one costs about the same to find among 100,000 as among ten: sums over the places are kept as a tree (Fenwick's).
 */
export class WaitingLine {
  readonly rule: string;
  readonly bucket: string;
  /** In the order of their places. */
  readonly #waiting = new Map<string, { readonly place: number; value: bigint }>();
  /** At each place, beginning with 1: the sum of as many places up to it as the lowest bit of its number says. */
  #tree: bigint[] = [0n];
  #total = 0n;

  constructor(rule: string, bucket: string) {
    this.rule = rule;
    this.bucket = bucket;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** What all take together. */
  get total(): bigint {
    return this.#total;
  }

  /** What the first takes; 0 where nobody waits. */
  get front(): bigint {
    const [first] = this.#waiting.values();
    return first?.value ?? 0n;
  }

  payoutIds(): string[] {
    return [...this.#waiting.keys()];
  }

  /** What those take that stand before a payout; all, where it does not wait here. */
  ahead(payoutId: string): bigint {
    const found = this.#waiting.get(payoutId);
    return found === undefined ? this.#total : this.#sumUpTo(found.place - 1);
  }

  /** The payout waits at the end; one that waits already keeps its place, and takes so much from now on. */
  stand(payoutId: string, value: bigint): void {
    const found = this.#waiting.get(payoutId);
    if (found === undefined) this.#append(payoutId, value);
    else this.#add(found, value - found.value);
  }

  leave(payoutId: string): void {
    const found = this.#waiting.get(payoutId);
    if (found === undefined) return;
    this.#add(found, -found.value);
    this.#waiting.delete(payoutId);
    if (this.#tree.length > 2 * this.#waiting.size + 1_000) this.#closeUp();
  }

  #append(payoutId: string, value: bigint): void {
    const place = this.#tree.length;
    this.#waiting.set(payoutId, { place, value });
    this.#tree.push(value + this.#sumUpTo(place - 1) - this.#sumUpTo(place - lowestBit(place)));
    this.#total += value;
  }

  #add(waiting: { readonly place: number; value: bigint }, change: bigint): void {
    if (change === 0n) return;
    waiting.value += change;
    this.#total += change;
    for (let { place } = waiting; place < this.#tree.length; place += lowestBit(place)) {
      this.#tree[place] = (this.#tree[place] ?? 0n) + change;
    }
  }

  #sumUpTo(place: number): bigint {
    let sum = 0n;
    for (let rest = place; rest > 0; rest -= lowestBit(rest)) sum += this.#tree[rest] ?? 0n;
    return sum;
  }

  /** Gives the places of those who left to those behind them. */
  #closeUp(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#tree = [0n];
    this.#total = 0n;
    for (const [payoutId, { value }] of waiting) this.#append(payoutId, value);
  }
}

function lowestBit(number: number): number {
  return number & -number;
}
