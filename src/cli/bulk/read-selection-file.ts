import { z } from 'zod';
import { parseInput, payoutIdField, txhashField } from '../../fields.js';
import type { CliContext } from '../context/cli-context.js';
import { openSource } from '../import/open-source.js';
import { RowMessages } from '../import/row-messages.js';
import { readSelectionRows } from './read-selection-rows.js';
import { readSelection, type SelectedPayout } from './selection.js';

/** Whether each row must name a transaction, or must not. */
type Needs = 'txhash' | 'no txhash' | 'nothing';

const SCHEMAS: Record<Needs, z.ZodType<SelectedPayout>> = {
  txhash: z.object({ payoutId: payoutIdField, txhash: txhashField }),
  /** What was paid would be paid twice. */
  'no txhash': z
    .object({
      payoutId: payoutIdField,
      txhash: z.literal('', 'must be empty: a payout with a transaction was sent').optional(),
    })
    .transform(({ payoutId }) => ({ payoutId })),
  nothing: z.object({ payoutId: payoutIdField }),
};

/**
 * Reads the payouts that an operator's file names.
 * @param needs - whether each row must name a transaction as well, or must not
 * @throws InvalidInputError when a row has an error, or none names a payout; StoppedError
 */
export async function readSelectionFile(
  context: CliContext,
  path: string,
  needs: Needs,
  signal: AbortSignal,
): Promise<readonly SelectedPayout[]> {
  const source = await openSource(path, signal, { readCsv: readSelectionRows });
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const parse = (input: unknown): SelectedPayout => parseInput(SCHEMAS[needs], input);
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
