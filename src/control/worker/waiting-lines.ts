import type { Verdict } from '../policy/decide.js';

/** What the first payout of a line wants. */
export interface FrontOfLine {
  readonly rule: string;
  readonly bucket: string;
  readonly value: bigint;
}

/**
 * Who waits for room in which window: first come, first served. A payout keeps its place until it is sent, or waits no more; what
 * comes later has to leave the room that those before it want, or a large one would wait for as long as small ones come.
 */
export class WaitingLines {
  readonly #lines = new Map<string, WaitingLine>();
  /** The lines in which a payout stands. */
  readonly #places = new Map<string, Set<string>>();
  /** The line that is looked at next without having room. */
  #turn = 0;

  /** What those take that stand before a payout; all, where it does not wait there. */
  ahead(rule: string, bucket: string, payoutId: string): bigint {
    return this.#lines.get(toName(rule, bucket))?.ahead(payoutId) ?? 0n;
  }

  /** What all take that wait. */
  wanted(rule: string, bucket: string): bigint {
    return this.#lines.get(toName(rule, bucket))?.total ?? 0n;
  }

  /** The payout waits for what these verdicts say, and for nothing else. */
  stand(payoutId: string, verdicts: readonly Verdict[]): void {
    const wanted = new Map(verdicts.flatMap(toPlace));
    for (const name of this.#places.get(payoutId) ?? []) if (!wanted.has(name)) this.#remove(name, payoutId);
    for (const [name, { rule, bucket, value }] of wanted) {
      const line = this.#lines.get(name) ?? new WaitingLine(rule, bucket);
      line.stand(payoutId, value);
      this.#lines.set(name, line);
    }
    if (wanted.size === 0) this.#places.delete(payoutId);
    else this.#places.set(payoutId, new Set(wanted.keys()));
  }

  /** The payout waits no more. */
  leave(payoutId: string): void {
    this.stand(payoutId, []);
  }

  /** Whether it stands anywhere. */
  has(payoutId: string): boolean {
    return this.#places.has(payoutId);
  }

  /**
   * The lines whose first payout has room, each from its front on, and some others in turn.
   * @param others - how many of these
   */
  take(hasRoom: (front: FrontOfLine) => boolean, others: number): string[][] {
    const lines = [...this.#lines.values()];
    const inTurn = new Set(
      Array.from({ length: Math.min(others, lines.length) }, (_, index) => (this.#turn + index) % lines.length),
    );
    this.#turn += others;
    return lines
      .filter(
        (line, index) => inTurn.has(index) || hasRoom({ rule: line.rule, bucket: line.bucket, value: line.front }),
      )
      .map((line) => line.payoutIds());
  }

  clear(): void {
    this.#lines.clear();
    this.#places.clear();
  }

  #remove(name: string, payoutId: string): void {
    const line = this.#lines.get(name);
    line?.leave(payoutId);
    if (line?.size === 0) this.#lines.delete(name);
  }
}

function toPlace(verdict: Verdict): [string, FrontOfLine][] {
  const { rule } = verdict;
  const wanted = verdict.kind === 'wait' ? verdict.waitsFor : undefined;
  return wanted === undefined ? [] : [[toName(rule, wanted.bucket), { rule, ...wanted }]];
}

function toName(rule: string, bucket: string): string {
  return `${rule} ${bucket}`;
}

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
