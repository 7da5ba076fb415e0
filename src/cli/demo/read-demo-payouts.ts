import { fileURLToPath } from 'node:url';
import { InvalidInputError, type Problem } from '../../errors.js';
import type { ValidPayout } from '../../ledger/payout.js';
import { checkRows } from '../import/check-rows.js';
import { openSource } from '../import/open-source.js';

/** Next to `dist` or `src`, in a clone and in an installed package. */
export const DEMO_FILE = fileURLToPath(new URL('../../../examples/payouts.csv', import.meta.url));

/**
 * Reads the payouts of the demo, as `payouts import` does. Users edit this file, so every problem names its line.
 * @param count - how many; the file is repeated as needed, with new ids
 * @defaultValue count all of the file
 * @throws InvalidInputError naming line, column and rule
 * @throws StoppedError when the signal was aborted
 */
export async function readDemoPayouts(file: string, signal: AbortSignal, count?: number): Promise<ValidPayout[]> {
  const problems: Problem[] = [];
  const source = await openSource(file, signal);
  const { checked } = await checkRows(source, {
    batch: undefined,
    checksums: true,
    signal,
    onProblem: (line, { field, message }) => {
      problems.push({ field: `${file}: line ${line}: ${field}`, message });
    },
    onProgress: () => undefined,
  });
  const payouts = checked.map(({ payout }) => payout);
  if (problems.length === 0 && payouts.length === 0) problems.push({ field: file, message: 'contains no payouts' });
  if (problems.length > 0) throw new InvalidInputError(problems);
  return Array.from({ length: count ?? payouts.length }, (_, index) => repeat(payouts, index));
}

function repeat(payouts: readonly ValidPayout[], index: number): ValidPayout {
  const payout = payouts[index % payouts.length];
  if (payout === undefined) throw new RangeError('No payout to repeat');
  const copy = Math.floor(index / payouts.length) + 1;
  return copy === 1 ? payout : { ...payout, payoutId: `${payout.payoutId}-${copy}` };
}
