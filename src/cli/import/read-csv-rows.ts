import type { Readable } from 'node:stream';
import { InvalidInputError, type Problem } from '../../errors.js';
import { parsePayoutTexts, type PayoutTexts } from './parse-payout-texts.js';
import {
  INPUT_COLUMN_NAMES,
  INPUT_COLUMNS,
  REQUIRED_CSV_COLUMNS,
  RESULT_CSV_COLUMNS,
  toColumnName,
  unquoteFormula,
  type CsvColumn,
} from '../../csv-columns.js';
import { readCsvRecords, type CsvOptions, type CsvValues } from './read-csv-records.js';
import { unreadableRow, type Row } from './row.js';

/**
 * Reads a CSV file row by row. The first line names the columns; an empty value is an absent one.
 * @throws InvalidInputError when the columns are invalid, or an unclosed quote makes it unclear where rows end
 */
export async function* readCsvRows(bytes: Readable, options: CsvOptions): AsyncGenerator<Row> {
  let columns: readonly CsvColumn[] | undefined;
  for await (const record of readCsvRecords(bytes, options)) {
    if (columns === undefined) columns = parseHeader(record);
    else yield 'values' in record ? parseRow(record, columns) : unreadableRow(record.line, record.message);
  }
}

/** @throws InvalidInputError naming every column that is unknown, missing or named twice */
function parseHeader(record: CsvValues): readonly CsvColumn[] {
  const { line } = record;
  if (!('values' in record)) throw new InvalidInputError([{ field: `line ${line}`, message: record.message }]);
  const names = record.values.map(toColumnName);
  const problems: Problem[] = [
    ...names
      .filter((name) => !(INPUT_COLUMN_NAMES as readonly string[]).includes(name))
      .map((name) => ({ field: JSON.stringify(record.values[names.indexOf(name)]), message: describeUnknown(name) })),
    ...REQUIRED_CSV_COLUMNS.filter((name) => !names.includes(name)).map((field) => ({
      field,
      message: 'is missing: the first line must name the columns, separated by commas or semicolons',
    })),
    ...findRepeated(record.values),
  ];
  if (problems.length === 0) return names as readonly CsvColumn[];
  throw new InvalidInputError(problems.map(({ field, message }) => ({ field: `line ${line}: ${field}`, message })));
}

/** Columns that are named twice, in the same spelling or in both. */
export function findRepeated(given: readonly string[]): Problem[] {
  const names = given.map(toColumnName);
  return given.flatMap((field, position) => {
    const first = names.indexOf(names[position] ?? '');
    if (first === position) return [];
    return [
      { field, message: given[first] === field ? 'is named twice' : `is the same column as ${given[first] ?? ''}` },
    ];
  });
}

/** A file with states lists payouts that were enqueued before: to pay them again must be a deliberate decision. */
function describeUnknown(name: string): string {
  return (RESULT_CSV_COLUMNS as readonly string[]).includes(name)
    ? 'is a result column of `payouts list --csv`: these payouts were enqueued before. Remove the column to enqueue them'
    : `is not a known column (${INPUT_COLUMN_NAMES.join(', ')})`;
}

function parseRow(
  { line, values }: { readonly line: number; readonly values: readonly string[] },
  columns: readonly CsvColumn[],
): Row {
  if (values.length !== columns.length) {
    return unreadableRow(line, `has ${values.length} values, but the first line names ${columns.length} columns`);
  }
  const texts: { -readonly [Field in keyof PayoutTexts]: string } = {};
  for (const [position, column] of columns.entries()) {
    const value = unquoteFormula(values[position] ?? '');
    if (value !== '') texts[INPUT_COLUMNS[column]] = value;
  }
  try {
    return { line, input: parsePayoutTexts(texts) };
  } catch (error) {
    if (error instanceof InvalidInputError) return { line, problems: error.problems };
    throw error;
  }
}
