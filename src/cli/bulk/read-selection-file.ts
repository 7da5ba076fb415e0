import { z } from 'zod';
import { parseInput, payoutIdField, txhashField } from '../../fields.js';
import type { CliContext } from '../context/cli-context.js';
import { openSource } from '../import/open-source.js';
import { RowMessages } from '../import/row-messages.js';
import { readSelectionRows } from './read-selection-rows.js';
import { readSelection, type SelectedPayout } from './selection.js';

const withoutTxhash = z.object({ payoutId: payoutIdField });
const withTxhash = z.object({ payoutId: payoutIdField, txhash: txhashField });

/**
 * Reads the payouts that an operator's file names.
 * @param needs - whether each row must name a transaction as well
 * @throws InvalidInputError when a row has an error, or none names a payout; StoppedError
 */
export async function readSelectionFile(
  context: CliContext,
  path: string,
  needs: 'txhash' | 'no txhash',
  signal: AbortSignal,
): Promise<readonly SelectedPayout[]> {
  const source = await openSource(path, signal, { readCsv: readSelectionRows });
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const parse = (input: unknown): SelectedPayout =>
    needs === 'txhash' ? parseInput(withTxhash, input) : parseInput(withoutTxhash, input);
  try {
    return await readSelection(source, {
      parse,
      signal,
      onProblem: (line, { field, message }) => {
        messages.add(`line ${line}: ${field}: ${message}`);
      },
    });
  } finally {
    messages.end();
  }
}
