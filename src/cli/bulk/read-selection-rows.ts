import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../errors.js';
import { INPUT_COLUMN_NAMES, RESULT_CSV_COLUMNS, toColumnName, unquoteFormula } from '../../csv-columns.js';
import { readCsvRecords, type CsvOptions, type CsvValues } from '../import/read-csv-records.js';
import { findRepeated } from '../import/read-csv-rows.js';
import { unreadableRow, type Row } from '../import/row.js';

const KNOWN_COLUMNS: readonly string[] = [...INPUT_COLUMN_NAMES, ...RESULT_CSV_COLUMNS];

/**
 * Reads payouts that are there already from a CSV file: `payout_id`, and `txhash` where it is given. The other columns of
 * `payouts list --csv` may stay in it.
 * @throws InvalidInputError when the columns are not usable, or a quote leaves it open where the rows end
 */
export async function* readSelectionRows(bytes: Readable, options: CsvOptions): AsyncGenerator<Row> {
  let columns: readonly string[] | undefined;
  for await (const record of readCsvRecords(bytes, options)) {
    if (columns === undefined) columns = parseHeader(record);
    else yield 'values' in record ? parseRow(record, columns) : unreadableRow(record.line, record.message);
  }
}

function parseHeader(record: CsvValues): readonly string[] {
  const { line } = record;
  if (!('values' in record)) throw new InvalidInputError([{ field: `line ${line}`, message: record.message }]);
  const names = record.values.map(toColumnName);
  const unknown = record.values.find((name) => !KNOWN_COLUMNS.includes(toColumnName(name)));
  if (unknown !== undefined) {
    const message = `is not a known column; expected one of ${KNOWN_COLUMNS.join(', ')}`;
    throw new InvalidInputError([{ field: `line ${line}: ${JSON.stringify(unknown)}`, message }]);
  }
  const repeated = findRepeated(record.values);
  if (repeated.length > 0) {
    throw new InvalidInputError(repeated.map(({ field, message }) => ({ field: `line ${line}: ${field}`, message })));
  }
  if (names.includes('payout_id')) return names;
  const message = 'is missing: the first line must name the columns, separated by commas or semicolons';
  throw new InvalidInputError([{ field: `line ${line}: payout_id`, message }]);
}

function parseRow(
  { line, values }: { readonly line: number; readonly values: readonly string[] },
  columns: readonly string[],
): Row {
  if (values.length !== columns.length) {
    return unreadableRow(line, `has ${values.length} values, the first line names ${columns.length} columns`);
  }
  const valueOf = (column: string): string | undefined =>
    unquoteFormula(values[columns.indexOf(column)] ?? '') || undefined;
  return { line, input: { payoutId: valueOf('payout_id'), txhash: valueOf('txhash') } };
}
