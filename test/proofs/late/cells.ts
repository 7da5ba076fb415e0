import { BAD_LINES, badLineCell } from './bad-line.js';
import type { Cell } from './cell.js';
import { CUT_OFFS, cutOffCell, IMPATIENT_CUT_OFFS } from './cut-off.js';
import { SILENCES, silentCell } from './silent.js';

const badLineCells = (cells: number, payouts: number, withinMs: number) =>
  Object.keys(BAD_LINES).flatMap((line) =>
    Array.from({ length: cells }, (_, index) => badLineCell({ line, number: index + 1, payouts, withinMs })),
  );

const timedCells = (isPatient: boolean) =>
  [
    ...[...CUT_OFFS, ...IMPATIENT_CUT_OFFS].map((cutOff) => ({
      forSeconds: cutOff.cutSeconds,
      cell: cutOffCell(cutOff, isPatient || cutOff.kernel !== undefined),
    })),
    ...SILENCES.map((silence) => ({ forSeconds: silence.forSeconds, cell: silentCell(silence) })),
  ]
    // The longest first, so that the short ones fill up what is left.
    .toSorted((one, other) => other.forSeconds - one.forSeconds)
    .map(({ cell }) => cell);

/** Within some minutes. */
export const SHORT_CELLS: readonly Cell[] = [...badLineCells(2, 12, 600_000), ...timedCells(false)];

/** With a thousand payouts over bad lines, and every take-over waited for. */
export const CELLS: readonly Cell[] = [...badLineCells(7, 50, 3_000_000), ...timedCells(true)];
