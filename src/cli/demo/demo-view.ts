import type { BoardChange, BoardRow } from './payout-board.js';

/** What is to be seen at a moment. */
export interface DemoMoment {
  readonly rows: readonly BoardRow[];
  readonly elapsedMs: number;
  readonly smallestGapMs: number | null;
  readonly meanGapMs: number | null;
  readonly workerPid: number | undefined;
}

/** Shows people how the demo goes on. */
export interface DemoView {
  /** Something happened around the payouts: one line. */
  note(text: string): void;
  /** A payout went from a state to another. */
  change(change: BoardChange, elapsedMs: number): void;
  /** Called some ten times a second. */
  draw(moment: DemoMoment): void;
  /** Leaves the last picture as it is. Safe to call twice. */
  close(): void;
}
