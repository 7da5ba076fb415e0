import type { Verdict } from '../policy/rule.js';

export interface FrontOfLine {
  readonly rule: string;
  readonly bucket: string;
  readonly value: bigint;
}

/**
 * Who waits for room in which window: first come, first served. A payout keeps its place until it is sent or stops
 * waiting. Later payouts must leave the room that earlier ones want, or small ones would keep a large one waiting.
 */
export class WaitingLines {
  readonly #lines = new Map<string, WaitingLine>();
  readonly #places = new Map<string, Set<string>>();
  #turn = 0;

  /** The sum before a payout, or of the whole line if it does not wait there. */
  ahead(rule: string, bucket: string, payoutId: string): bigint {
    return this.#lines.get(toName(rule, bucket))?.ahead(payoutId) ?? 0n;
  }

  wanted(rule: string, bucket: string): bigint {
    return this.#lines.get(toName(rule, bucket))?.total ?? 0n;
  }

  /** The payout waits for the room that these verdicts name, and for no other. */
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

  leave(payoutId: string): void {
    this.stand(payoutId, []);
  }

  has(payoutId: string): boolean {
    return this.#places.has(payoutId);
  }

  /** Lines whose first payout has room, each from its front, and up to `others` more in turn. */
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
 * Payouts that wait for room in one window, with their values. A Fenwick tree finds the sum before one of 100,000 about
 * as fast as of ten.
 */
export class WaitingLine {
  readonly rule: string;
  readonly bucket: string;
  readonly #waiting = new Map<string, { readonly place: number; value: bigint }>();
  /** From place 1: each entry sums as many places up to its own as the lowest bit of its place says. */
  #tree: bigint[] = [0n];
  #total = 0n;

  constructor(rule: string, bucket: string) {
    this.rule = rule;
    this.bucket = bucket;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get total(): bigint {
    return this.#total;
  }

  get front(): bigint {
    const [first] = this.#waiting.values();
    return first?.value ?? 0n;
  }

  payoutIds(): string[] {
    return [...this.#waiting.keys()];
  }

  ahead(payoutId: string): bigint {
    const found = this.#waiting.get(payoutId);
    return found === undefined ? this.#total : this.#sumUpTo(found.place - 1);
  }

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
