import { isAborted } from '../../base/clock.js';
import { InvalidInputError, StoppedError, type Problem } from '../../base/errors.js';
import { checkRecipient, needsCurrencies, parsePayout } from '../../producer/parse-payouts.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { NewPayout } from '../../ledger/payout.js';
import { differingFields, pairsToRecord, toRecordFields } from '../../ledger/payout-record.js';
import { CurrencyTotals, type CurrencyTotal } from './currency-totals.js';
import type { ImportSource } from './open-source.js';
import type { Row } from './read-records.js';

/** Rows of one file, all in memory until they are enqueued. */
const MAX_ROWS = 250_000;

export interface CheckedPayout {
  readonly line: number;
  readonly payout: NewPayout;
}

export interface FileCheck {
  readonly rows: number;
  /** Different payouts that can be enqueued. */
  readonly payouts: number;
  /** Rows that repeat an earlier row. */
  readonly repeated: number;
  readonly invalid: number;
  readonly totals: readonly CurrencyTotal[];
}

interface CheckRowsOptions {
  readonly batch: string | undefined;
  readonly checksums: boolean;
  readonly currencies?: () => Promise<readonly Currency[]>;
  /** @throws InvalidInputError */
  readonly check?: (payout: NewPayout) => void;
  readonly onProblem: (line: number, problem: Problem) => void;
  /** Called every thousand rows. */
  readonly onProgress: (rows: number) => void;
  readonly signal: AbortSignal;
}

const PROGRESS_EVERY_ROWS = 1_000;

/**
 * @returns the different payouts in order, and counts
 * @throws InvalidInputError if the file as a whole is not usable
 */
export async function checkRows(
  { name, rows, nameField }: Pick<ImportSource, 'name' | 'rows' | 'nameField'>,
  { batch, checksums, currencies, check, onProblem, onProgress, signal }: CheckRowsOptions,
): Promise<{ readonly check: FileCheck; readonly checked: readonly CheckedPayout[] }> {
  const checked = new Map<string, CheckedPayout>();
  const totals = new CurrencyTotals();
  const counts = { rows: 0, payouts: 0, repeated: 0, invalid: 0 };
  for await (const row of rows) {
    counts.rows += 1;
    if (counts.rows > MAX_ROWS) throw tooLong(name);
    if (counts.rows % PROGRESS_EVERY_ROWS === 0) onProgress(counts.rows);
    if (isAborted(signal)) throw new StoppedError('Stopped while checking; nothing was enqueued');
    try {
      const payout = parsePayout(readInput(row, batch), { checksums });
      if (checksums && currencies !== undefined && needsCurrencies(payout)) {
        checkRecipient(payout, { checksums, currencies: await currencies() });
      }
      check?.(payout);
      const earlier = checked.get(payout.payoutId);
      if (earlier === undefined) {
        checked.set(payout.payoutId, { line: row.line, payout });
        totals.add(payout);
        counts.payouts += 1;
      } else {
        requireSame(payout, earlier, nameField);
        counts.repeated += 1;
      }
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      counts.invalid += 1;
      for (const { field, message } of error.problems) onProblem(row.line, { field: nameField(field), message });
    }
  }
  return { check: { ...counts, totals: totals.list() }, checked: [...checked.values()] };
}

function tooLong(name: string): InvalidInputError {
  const message = `has more than ${MAX_ROWS} rows: split the file, and give the parts one after the other`;
  return new InvalidInputError([{ field: name, message }]);
}

function readInput(row: Row, batch: string | undefined): unknown {
  if ('problems' in row) throw new InvalidInputError(row.problems);
  const own = row.input['batch'];
  if (batch === undefined || own === batch) return row.input;
  if (own === undefined) return { ...row.input, batch };
  const message = `must be absent, or that of --batch, "${batch}" (got ${JSON.stringify(own)})`;
  throw new InvalidInputError([{ field: 'batch', message }]);
}

/** Compares by the ledger's own rule. */
function requireSame(payout: NewPayout, earlier: CheckedPayout, nameField: ImportSource['nameField']): void {
  const { payoutId, ...rest } = earlier.payout;
  const fields = differingFields(pairsToRecord(toRecordFields(rest)), payout).map(nameField);
  if (fields.length === 0) return;
  const message = `already used in line ${earlier.line} with a different ${fields.join(', ')} (got "${payoutId}")`;
  throw new InvalidInputError([{ field: 'payoutId', message }]);
}
