import { BAD_LINES, badLineCell } from './bad-line.js';
import type { Cell } from './cell.js';
import { CUT_OFFS, cutOffCell } from './cut-off.js';
import { FROZEN, frozenCell, PARTLY_FROZEN } from './frozen.js';

const badLineCells = (cells: number, payouts: number, withinMs: number) =>
  Object.keys(BAD_LINES).flatMap((line) =>
    Array.from({ length: cells }, (_, index) => badLineCell({ line, number: index + 1, payouts, withinMs })),
  );

const TIMED: readonly Cell[] = [
  ...CUT_OFFS.map((cutOff) => ({ forSeconds: cutOff.cutSeconds, cell: cutOffCell(cutOff) })),
  ...[...FROZEN, ...PARTLY_FROZEN].map((frozen) => ({ forSeconds: frozen.frozenSeconds, cell: frozenCell(frozen) })),
]
  .toSorted((one, other) => other.forSeconds - one.forSeconds)
  .map(({ cell }) => cell);

/** The longest first, so that the short ones fill up what is left. */
export const CELLS: readonly Cell[] = [...badLineCells(2, 12, 400_000), ...TIMED];

/** With a thousand payouts over bad lines. */
export const LONG_CELLS: readonly Cell[] = [...badLineCells(7, 50, 3_000_000), ...TIMED];
