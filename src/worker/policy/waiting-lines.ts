import type { Verdict } from '../../control/policy/decide.js';

/** The payouts that wait for room in one window, the first at the front, with what each takes. */
interface Line {
  readonly rule: string;
  readonly bucket: string;
  readonly waiting: Map<string, bigint>;
}

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
  readonly #lines = new Map<string, Line>();
  /** The lines in which a payout stands. */
  readonly #places = new Map<string, Set<string>>();
  /** The line that is looked at next without having room. */
  #turn = 0;

  /** What those take that stand before a payout; all, where it does not wait there. */
  ahead(rule: string, bucket: string, payoutId: string): bigint {
    let sum = 0n;
    for (const [waiting, value] of this.#lines.get(toName(rule, bucket))?.waiting ?? []) {
      if (waiting === payoutId) break;
      sum += value;
    }
    return sum;
  }

  /** What all take that wait. */
  wanted(rule: string, bucket: string): bigint {
    return [...(this.#lines.get(toName(rule, bucket))?.waiting.values() ?? [])].reduce((sum, value) => sum + value, 0n);
  }

  /** The payout waits for what these verdicts say, and for nothing else. */
  stand(payoutId: string, verdicts: readonly Verdict[]): void {
    const wanted = new Map(verdicts.flatMap(toPlace));
    for (const name of this.#places.get(payoutId) ?? []) if (!wanted.has(name)) this.#remove(name, payoutId);
    for (const [name, { rule, bucket, value }] of wanted) {
      const line = this.#lines.get(name) ?? { rule, bucket, waiting: new Map<string, bigint>() };
      line.waiting.set(payoutId, value);
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
    return lines.flatMap(({ rule, bucket, waiting }, index) => {
      const [value = 0n] = waiting.values();
      return inTurn.has(index) || hasRoom({ rule, bucket, value }) ? [[...waiting.keys()]] : [];
    });
  }

  clear(): void {
    this.#lines.clear();
    this.#places.clear();
  }

  #remove(name: string, payoutId: string): void {
    const line = this.#lines.get(name);
    line?.waiting.delete(payoutId);
    if (line?.waiting.size === 0) this.#lines.delete(name);
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
