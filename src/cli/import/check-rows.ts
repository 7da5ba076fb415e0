import { isAborted } from '../../clock.js';
import { InvalidInputError, StoppedError, type Problem } from '../../errors.js';
import { parseInput } from '../../fields.js';
import { payoutInputSchema, type ValidPayout } from '../../ledger/payout.js';
import { CurrencyTotals, type CurrencyTotal } from './currency-totals.js';
import type { Row } from './row.js';
import { SeenPayouts } from './seen-payouts.js';

/** What is in a file. */
export interface FileCheck {
  readonly rows: number;
  /** Different payouts that can be enqueued. */
  readonly payouts: number;
  /** Rows that say again what an earlier row said. */
  readonly repeated: number;
  /** Rows with errors. */
  readonly invalid: number;
  readonly totals: readonly CurrencyTotal[];
}

export interface CheckRowsOptions {
  /** Into which all payouts go. */
  readonly batch: string | undefined;
  /** Given each different payout that can be enqueued, as JSON. */
  readonly onPayout: (line: number, json: string) => Promise<void>;
  readonly onProblem: (line: number, problem: Problem) => void;
  /** Called now and then. */
  readonly onProgress: () => void;
  readonly signal: AbortSignal;
}

const PROGRESS_EVERY_ROWS = 1_000;

/**
 * Checks every row, by itself and against the rows before it.
 * @throws InvalidInputError when the file as a whole is not usable; StoppedError
 */
export async function checkRows(rows: AsyncIterable<Row>, options: CheckRowsOptions): Promise<FileCheck> {
  const { batch, onPayout, onProblem, onProgress, signal } = options;
  const seen = new SeenPayouts();
  const totals = new CurrencyTotals();
  const counts = { rows: 0, payouts: 0, repeated: 0, invalid: 0 };
  for await (const row of rows) {
    counts.rows += 1;
    if (counts.rows % PROGRESS_EVERY_ROWS === 0) onProgress();
    if (isAborted(signal)) throw new StoppedError('Stopped while checking; nothing was enqueued');
    try {
      const payout = readPayout(row, batch);
      const json = JSON.stringify(payout);
      const first = seen.note(payout.payoutId, json, row.line);
      if (first === undefined) {
        counts.payouts += 1;
        totals.add(payout);
        await onPayout(row.line, json);
      } else if (first.same) counts.repeated += 1;
      else throw repeatedOtherwise(payout, first.line);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      counts.invalid += 1;
      for (const problem of error.problems) onProblem(row.line, problem);
    }
  }
  return { ...counts, totals: totals.list() };
}

function readPayout(row: Row, batch: string | undefined): ValidPayout {
  if ('problems' in row) throw new InvalidInputError(row.problems);
  const own = row.input['batch'];
  if (batch === undefined || own === batch) return parseInput(payoutInputSchema, row.input);
  if (own === undefined) return parseInput(payoutInputSchema, { ...row.input, batch });
  const message = `must be absent, or the one of --batch, "${batch}" (got ${JSON.stringify(own)})`;
  throw new InvalidInputError([{ field: 'batch', message }]);
}

function repeatedOtherwise({ payoutId }: ValidPayout, line: number): InvalidInputError {
  const message = `stands in line ${line} already, with other data (got "${payoutId}")`;
  return new InvalidInputError([{ field: 'payoutId', message }]);
}
