import type { Verdict } from '../policy/decide.js';
import { WaitingLine } from './waiting-line.js';

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
