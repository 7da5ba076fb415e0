import type { Readable } from 'node:stream';
import { InvalidInputError, type Problem } from '../../base/errors.js';
import {
  INPUT_COLUMN_NAMES,
  INPUT_COLUMNS,
  REQUIRED_CSV_COLUMNS,
  RESULT_COLUMNS,
  RESULT_CSV_COLUMNS,
  toColumnName,
  unquoteFormula,
} from '../../ledger/payout-csv.js';
import { parsePayoutTexts } from './parse-payout-texts.js';
import { readCsvRecords, unreadableRow, type CsvValues, type Delimiter, type Row } from './read-records.js';

const FIELDS: Readonly<Record<string, string>> = { ...INPUT_COLUMNS, ...RESULT_COLUMNS };

export interface CsvTable {
  /** `any`: each is kept under the name that the file gives it. */
  readonly columns: readonly string[] | 'any';
  readonly required: readonly string[];
  /** Why a column outside {@link columns} is wrong. */
  readonly describeUnknown?: (column: string) => string;
  /** @param texts - values by field; an empty one is absent */
  readonly toInput: (texts: Readonly<Record<string, string>>) => Readonly<Record<string, unknown>>;
}

export const PAYOUT_TABLE: CsvTable = {
  columns: INPUT_COLUMN_NAMES,
  required: REQUIRED_CSV_COLUMNS,
  /** A file with states lists payouts enqueued before: paying them again must be a deliberate decision. */
  describeUnknown: (column) =>
    (RESULT_CSV_COLUMNS as readonly string[]).includes(column)
      ? 'is a result column of `payouts list --csv`: these payouts were enqueued before. Remove the column to enqueue them'
      : `is not a known column (${INPUT_COLUMN_NAMES.join(', ')})`,
  toInput: parsePayoutTexts,
};

/** @throws InvalidInputError if the columns are invalid, or an unclosed quote hides where rows end */
export async function* readCsvRows(
  bytes: Readable,
  table: CsvTable,
  mustEnd: boolean,
  delimiter?: Delimiter,
): AsyncGenerator<Row> {
  let columns: readonly string[] | undefined;
  for await (const record of readCsvRecords(bytes, mustEnd, delimiter)) {
    if (columns === undefined) columns = parseHeader(record, table);
    else yield 'values' in record ? parseRow(record, columns, table) : unreadableRow(record.line, record.message);
  }
}

function parseHeader(
  record: CsvValues,
  { columns, required, describeUnknown = () => '' }: CsvTable,
): readonly string[] {
  const { line } = record;
  if (!('values' in record)) throw new InvalidInputError([{ field: `line ${line}`, message: record.message }]);
  const given = record.values;
  const names = columns === 'any' ? given : given.map(toColumnName);
  const problems: Problem[] = [
    ...names
      .filter((name) => columns !== 'any' && !columns.includes(name))
      .map((name) => ({ field: JSON.stringify(given[names.indexOf(name)]), message: describeUnknown(name) })),
    ...required
      .filter((name) => !names.includes(name))
      .map((field) => ({
        field,
        message: 'is missing: the first line must name the columns, separated by commas or semicolons',
      })),
    ...given.flatMap((field, position) => {
      const first = names.indexOf(names[position] ?? '');
      if (first === position) return [];
      const isSame = given[first] === field;
      return [{ field, message: isSame ? 'is named twice' : `is the same column as ${given[first] ?? ''}` }];
    }),
  ];
  if (problems.length === 0) return names;
  throw new InvalidInputError(problems.map(({ field, message }) => ({ field: `line ${line}: ${field}`, message })));
}

function parseRow(
  { line, values }: { readonly line: number; readonly values: readonly string[] },
  names: readonly string[],
  { columns, toInput }: CsvTable,
): Row {
  if (values.length !== names.length) {
    return unreadableRow(line, `has ${values.length} values, but the first line names ${names.length} columns`);
  }
  const texts: Record<string, string> = {};
  for (const [position, name] of names.entries()) {
    const value = unquoteFormula(values[position] ?? '');
    if (value !== '') texts[(columns === 'any' ? undefined : FIELDS[name]) ?? name] = value;
  }
  try {
    return { line, input: toInput(texts) };
  } catch (error) {
    if (error instanceof InvalidInputError) return { line, problems: error.problems };
    throw error;
  }
}
