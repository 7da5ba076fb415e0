import { isAborted } from '../../base/clock.js';
import { InvalidInputError, StoppedError, type Problem } from '../../base/errors.js';
import { checkRecipient, needsCurrencies, parsePayout } from '../../producer/parse-payouts.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import type { NewPayout } from '../../ledger/payout.js';
import { differingFields, pairsToRecord, toRecordFields } from '../../ledger/payout-record.js';
import { CurrencyTotals, type CurrencyTotal } from './currency-totals.js';
import type { ImportSource } from './open-source.js';
import type { Row } from './read-records.js';

/** Rows of one file. All are kept in memory until they are enqueued. */
const MAX_ROWS = 250_000;

/** A payout that can be enqueued, and the line of its row. */
export interface CheckedPayout {
  readonly line: number;
  readonly payout: NewPayout;
}

/** What a file holds. */
export interface FileCheck {
  readonly rows: number;
  /** Different payouts that can be enqueued. */
  readonly payouts: number;
  /** Rows that repeat an earlier row. */
  readonly repeated: number;
  /** Rows with errors. */
  readonly invalid: number;
  readonly totals: readonly CurrencyTotal[];
}

interface CheckRowsOptions {
  /** The batch of all payouts. */
  readonly batch: string | undefined;
  /** Refuses an address whose checksum is wrong. */
  readonly checksums: boolean;
  /** Called when an address needs it. @defaultValue nothing is known of currencies */
  readonly currencies?: () => Promise<readonly Currency[]>;
  /** What a payout must fulfil besides. @throws InvalidInputError */
  readonly check?: (payout: NewPayout) => void;
  readonly onProblem: (line: number, problem: Problem) => void;
  /** Called every thousand rows. */
  readonly onProgress: (rows: number) => void;
  readonly signal: AbortSignal;
}

const PROGRESS_EVERY_ROWS = 1_000;

/**
 * Checks every row, by itself and against the rows before it.
 * @returns what the file holds, and its different payouts in their order
 * @throws InvalidInputError when the file as a whole is not usable; StoppedError
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

/** The ledger's own rule decides whether two payouts are the same. @throws InvalidInputError */
function requireSame(payout: NewPayout, earlier: CheckedPayout, nameField: ImportSource['nameField']): void {
  const { payoutId, ...rest } = earlier.payout;
  const fields = differingFields(pairsToRecord(toRecordFields(rest)), payout).map(nameField);
  if (fields.length === 0) return;
  const message = `already used in line ${earlier.line} with a different ${fields.join(', ')} (got "${payoutId}")`;
  throw new InvalidInputError([{ field: 'payoutId', message }]);
}
