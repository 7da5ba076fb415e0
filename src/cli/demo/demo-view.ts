import type { BoardChange, BoardRow } from './payout-board.js';

/** What is shown at a moment. */
export interface DemoMoment {
  readonly rows: readonly BoardRow[];
  readonly elapsedMs: number;
  readonly smallestGapMs: number | null;
  readonly meanGapMs: number | null;
  readonly workerPid: number | undefined;
}

/** Shows the progress of the demo. */
export interface DemoView {
  /** Something happened around the payouts: one line. */
  note(text: string): void;
  /** A payout changed its state. */
  change(change: BoardChange, elapsedMs: number): void;
  /** Called about ten times a second. */
  draw(moment: DemoMoment): void;
  /** Keeps the last picture on the screen. Safe to call twice. */
  close(): void;
}
