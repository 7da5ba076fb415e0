import { isAborted } from '../../clock.js';
import { InvalidInputError, StoppedError, type Problem } from '../../errors.js';
import { isSameTxhash, txhashKey } from '../../fields.js';
import type { ImportSource } from '../import/open-source.js';
import type { Row } from '../import/row.js';

/** A payout that an operator has chosen. */
export interface SelectedPayout {
  readonly payoutId: string;
  /** The transaction that the operator names for it. */
  readonly txhash?: string;
  /** Where it stands in the operator's file. */
  readonly line?: number;
}

export interface ReadSelectionOptions {
  /** Checks one row. @throws InvalidInputError */
  readonly parse: (input: unknown) => Omit<SelectedPayout, 'line'>;
  readonly onProblem: (line: number, problem: Problem) => void;
  readonly signal: AbortSignal;
}

/**
 * Reads the payouts that a file names, each once.
 * @throws InvalidInputError when any row has an error, or there is none; StoppedError
 */
export async function readSelection(
  source: Pick<ImportSource, 'name' | 'rows' | 'nameField'>,
  { parse, onProblem, signal }: ReadSelectionOptions,
): Promise<readonly SelectedPayout[]> {
  const selected = new Map<string, SelectedPayout>();
  const txhashes = new Map<string, SelectedPayout>();
  let invalid = 0;
  for await (const row of source.rows) {
    if (isAborted(signal)) throw new StoppedError('Stopped while reading; nothing was changed');
    try {
      const payout = { ...parse(inputOf(row)), line: row.line };
      refuseOther(payout, selected, txhashes);
      selected.set(payout.payoutId, payout);
      if (payout.txhash !== undefined) txhashes.set(txhashKey(payout.txhash), payout);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      invalid += 1;
      for (const { field, message } of error.problems) onProblem(row.line, { field: source.nameField(field), message });
    }
  }
  if (invalid > 0) throw unusable(source, `${invalid} of its rows cannot be used; nothing was changed`);
  if (selected.size === 0) throw unusable(source, 'names no payout');
  return [...selected.values()];
}

function inputOf(row: Row): unknown {
  if ('problems' in row) throw new InvalidInputError(row.problems);
  return row.input;
}

/** A payout may stand in a file twice, but not with two transactions, nor one transaction with two payouts. */
function refuseOther(
  { payoutId, txhash }: SelectedPayout,
  selected: ReadonlyMap<string, SelectedPayout>,
  txhashes: ReadonlyMap<string, SelectedPayout>,
): void {
  const earlier = selected.get(payoutId);
  if (earlier !== undefined && earlier.txhash !== txhash && !isSameTxhash(earlier.txhash, txhash)) {
    const message = `is already on line ${earlier.line ?? 0}, with another txhash (got "${payoutId}")`;
    throw new InvalidInputError([{ field: 'payoutId', message }]);
  }
  const holder = txhash === undefined ? undefined : txhashes.get(txhashKey(txhash));
  if (holder !== undefined && holder.payoutId !== payoutId) {
    const message = `is already on line ${holder.line ?? 0}, for payout ${holder.payoutId} (got "${txhash ?? ''}")`;
    throw new InvalidInputError([{ field: 'txhash', message }]);
  }
}

function unusable({ name }: Pick<ImportSource, 'name'>, message: string): InvalidInputError {
  return new InvalidInputError([{ field: name, message }]);
}
