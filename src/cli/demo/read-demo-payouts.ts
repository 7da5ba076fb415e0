import { fileURLToPath } from 'node:url';
import { InvalidInputError, type Problem } from '../../errors.js';
import type { ValidPayout } from '../../ledger/payout.js';
import { checkRows } from '../import/check-rows.js';
import { openSource } from '../import/open-source.js';
import { PayoutSpool } from '../import/payout-spool.js';

/** Beside `dist` or `src`, in a clone and in an installed package alike. */
export const DEMO_FILE = fileURLToPath(new URL('../../../examples/payouts.csv', import.meta.url));

/**
 * Reads the payouts that the demo pays out, as `payouts import` does. People edit this file, so every problem is told
 * with its line.
 * @param count - how many are wanted: without it all of the file; more than it has are its payouts again, with ids of
 * their own
 * @throws InvalidInputError naming line, column and rule; StoppedError
 */
export async function readDemoPayouts(file: string, signal: AbortSignal, count?: number): Promise<ValidPayout[]> {
  const problems: Problem[] = [];
  const source = await openSource(file, signal);
  const spool = await PayoutSpool.create();
  try {
    await checkRows(source, {
      batch: undefined,
      spool,
      signal,
      onProblem: (line, { field, message }) => {
        problems.push({ field: `${file}: line ${line}: ${field}`, message });
      },
      onProgress: () => undefined,
    });
    const payouts: ValidPayout[] = [];
    for await (const { payout } of spool.read()) payouts.push(payout);
    if (problems.length === 0 && payouts.length === 0) problems.push({ field: file, message: 'holds no payout' });
    if (problems.length > 0) throw new InvalidInputError(problems);
    return Array.from({ length: count ?? payouts.length }, (_, index) => repeat(payouts, index));
  } finally {
    await spool.close();
  }
}

function repeat(payouts: readonly ValidPayout[], index: number): ValidPayout {
  const payout = payouts[index % payouts.length];
  if (payout === undefined) throw new RangeError('There is no payout to repeat');
  const round = Math.floor(index / payouts.length) + 1;
  return round === 1 ? payout : { ...payout, payoutId: `${payout.payoutId}-${round}` };
}
