import { pipeline, type Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { InvalidInputError, type Problem } from '../../errors.js';
import { readPayoutTexts } from '../payout-texts.js';
import { CSV_COLUMN_NAMES, CSV_COLUMNS, REQUIRED_CSV_COLUMNS, type CsvColumn } from './csv-columns.js';
import { isUtf8, MAX_ROW_LENGTH, UTF8_PROBLEM, type Row } from './row.js';

/**
 * Reads a CSV file row by row. The first line names the columns; an empty value is an absent one.
 * @throws InvalidInputError when the columns are not usable, or a quote leaves it open where the rows end
 */
export async function* readCsvRows(bytes: Readable): AsyncGenerator<Row> {
  // Column counts are looked at here, so that a row with a wrong one is reported like any other mistake.
  const parser = parse({ bom: true, trim: true, relax_column_count: true, max_record_size: MAX_ROW_LENGTH });
  pipeline(bytes, parser, () => undefined);
  let columns: readonly CsvColumn[] | undefined;
  let line = 1;
  try {
    for await (const values of parser as AsyncIterable<string[]>) {
      if (!isBlank(values)) {
        if (columns === undefined) columns = readHeader(values, line);
        else yield readRow(values, columns, line);
      }
      line += 1 + countLineBreaks(values);
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new InvalidInputError([{ field: `line ${line} or later`, message: `is no CSV: ${error.message}` }]);
  }
}

function isBlank(values: readonly string[]): boolean {
  return values.length === 1 && values[0] === '';
}

function countLineBreaks(values: readonly string[]): number {
  let count = 0;
  for (const value of values) if (value.includes('\n')) count += value.split('\n').length - 1;
  return count;
}

/** @throws InvalidInputError naming every column that is unknown, missing or there twice */
function readHeader(names: readonly string[], line: number): readonly CsvColumn[] {
  const problems: Problem[] = [
    ...names
      .filter((name) => !(CSV_COLUMN_NAMES as readonly string[]).includes(name))
      .map((name) => ({
        field: JSON.stringify(name),
        message: `is no column: known are ${CSV_COLUMN_NAMES.join(', ')}`,
      })),
    ...REQUIRED_CSV_COLUMNS.filter((name) => !names.includes(name)).map((field) => ({
      field,
      message: 'is missing: the first line must name the columns, separated by commas',
    })),
    ...names
      .filter((name, position) => names.indexOf(name) < position)
      .map((field) => ({ field, message: 'is named twice' })),
  ];
  if (problems.length === 0) return names as readonly CsvColumn[];
  throw new InvalidInputError(problems.map(({ field, message }) => ({ field: `line ${line}: ${field}`, message })));
}

function readRow(values: readonly string[], columns: readonly CsvColumn[], line: number): Row {
  if (values.length !== columns.length) {
    const message = `has ${values.length} values, the first line names ${columns.length} columns`;
    return { line, problems: [{ field: 'row', message }] };
  }
  if (!values.every(isUtf8)) return { line, problems: [UTF8_PROBLEM] };
  const texts: Partial<Record<(typeof CSV_COLUMNS)[CsvColumn], string>> = {};
  for (const [position, column] of columns.entries()) {
    const value = values[position] ?? '';
    if (value !== '') texts[CSV_COLUMNS[column]] = value;
  }
  try {
    return { line, input: readPayoutTexts(texts) };
  } catch (error) {
    if (error instanceof InvalidInputError) return { line, problems: error.problems };
    throw error;
  }
}
