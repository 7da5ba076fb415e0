import type { Cell } from './cell.js';
import { CUT_OFFS, cutOffCell } from './cut-off.js';
import { FROZEN, frozenCell, PARTLY_FROZEN } from './frozen.js';

/** The longest first, so that the short ones fill up what is left. */
export const CELLS: readonly Cell[] = [
  ...CUT_OFFS.map((cutOff) => ({ ms: cutOff.cutSeconds, cell: cutOffCell(cutOff) })),
  ...[...FROZEN, ...PARTLY_FROZEN].map((frozen) => ({ ms: frozen.frozenSeconds, cell: frozenCell(frozen) })),
]
  .toSorted((one, other) => other.ms - one.ms)
  .map(({ cell }) => cell);
