import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../errors.js';
import { isUtf8, MAX_ROW_LENGTH, NOT_UTF8_MESSAGE, TOO_LONG_MESSAGE } from './row.js';
import { splitCsvRecord, type Delimiter } from './split-csv-record.js';
import { splitLines, type Line } from './split-lines.js';

/** The values of a record, or why it cannot be read. */
export type CsvValues = { readonly line: number } & (
  { readonly values: readonly string[] } | { readonly message: string }
);

interface OpenRecord {
  readonly line: number;
  readonly text: string;
}

export interface CsvOptions {
  /** The last line needs a line break, because without one its end may have been lost. */
  readonly mustEnd: boolean;
  /** @defaultValue what the first line has */
  readonly delimiter?: Delimiter | undefined;
}

/**
 * Reads the records of a CSV file, each with the line in which it begins. Lines without values, as spreadsheets leave
 * them, are skipped.
 * @throws InvalidInputError when an unclosed quote makes it unclear where the following records begin: no row can be
 * trusted then
 */
export async function* readCsvRecords(
  bytes: Readable,
  { mustEnd, delimiter: given }: CsvOptions,
): AsyncGenerator<CsvValues> {
  let open: OpenRecord | undefined;
  let delimiter = given;
  for await (const next of splitLines(bytes, MAX_ROW_LENGTH)) {
    const record: OpenRecord = open === undefined ? next : { line: open.line, text: `${open.text}\n${next.text}` };
    const { line } = record;
    if (record.text.length > MAX_ROW_LENGTH) {
      if (open !== undefined) throw unclosed(line);
      yield { line, message: TOO_LONG_MESSAGE };
    } else if (open !== undefined && !next.text.includes('"')) open = record;
    else {
      // The first line names the columns, in none of which either character may stand.
      if (record.text.trim() !== '') delimiter ??= /^[^,]*;[^,]*$/.test(record.text) ? ';' : ',';
      const split = splitCsvRecord(record.text, delimiter);
      if (split.kind === 'wrong' && open !== undefined) throw unclosed(line);
      open = split.kind === 'open' ? record : undefined;
      if (split.kind === 'wrong') yield { line, message: split.message };
      else if (split.kind === 'values') yield* checkRecord(line, split.values, next, mustEnd);
    }
  }
  if (open !== undefined) throw unclosed(open.line);
}

function* checkRecord(
  line: number,
  values: readonly string[],
  { isEnded }: Line,
  mustEnd: boolean,
): Generator<CsvValues> {
  if (values.every((value) => value === '')) return;
  if (!values.every(isUtf8)) yield { line, message: NOT_UTF8_MESSAGE };
  else if (mustEnd && !isEnded) {
    yield { line, message: 'does not end with a line break, so part of it may be missing: was the input cut off?' };
  } else yield { line, values };
}

function unclosed(line: number): InvalidInputError {
  const message = 'opens a quote that is not closed correctly, so the rows after it cannot be told apart';
  return new InvalidInputError([{ field: `line ${line}`, message }]);
}
