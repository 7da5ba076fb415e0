import type { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
// In the build of CommonJS each entry of the library has a class of its own.
import { CsvError as TextCsvError, parse as parseText } from 'csv-parse/sync';
import { InvalidInputError, type Problem } from '../../base/errors.js';

export type Row =
  | { readonly line: number; readonly input: Readonly<Record<string, unknown>> }
  | { readonly line: number; readonly problems: readonly Problem[] };

/** Spreadsheets write semicolons in countries with decimal commas. */
export const DELIMITERS = [',', ';'] as const;

export type Delimiter = (typeof DELIMITERS)[number];

export type CsvValues = { readonly line: number } & (
  { readonly values: readonly string[] } | { readonly message: string }
);

/** Characters. A longer row lost its line breaks or quotes: a payout is far shorter. */
const MAX_ROW_LENGTH = 64 * 1024;

/** The most read of a row without an end. */
const MAX_ROW_BYTES = 16 * MAX_ROW_LENGTH;

interface RawRecord {
  /** First line of the record, from 1. */
  readonly line: number;
  readonly text: string;
  /** Without a line break it is the last record, and part of it may be missing. */
  readonly isEnded: boolean;
  /** Correct only for a text without quotes. */
  readonly values: readonly string[];
}

export async function* readLines(bytes: Readable): AsyncGenerator<RawRecord & { readonly message?: string }> {
  for await (const record of readRecords(bytes.setEncoding('utf8') as AsyncIterable<string>, null, ',')) {
    if (record.text.trim() !== '') yield { ...record, ...findUnreadable(record.text) };
  }
}

/**
 * Skips lines without values, which spreadsheets leave.
 * @param mustEnd - without a last line break, the end may be lost
 * @param delimiter - @defaultValue that of the first line
 * @throws InvalidInputError if an unclosed quote hides where the next records begin
 */
export async function* readCsvRecords(
  bytes: Readable,
  mustEnd: boolean,
  delimiter?: Delimiter,
): AsyncGenerator<CsvValues> {
  const texts = bytes.setEncoding('utf8').iterator() as AsyncIterableIterator<string>;
  const head = await readHead(texts);
  // No column name contains a delimiter.
  const separator = delimiter ?? (/^[^,\n]*;[^,\n]*$/.test(head.trimStart().split('\n', 1)[0] ?? '') ? ';' : ',');
  const source = async function* (): AsyncGenerator<string> {
    yield head;
    yield* texts;
  };
  for await (const record of readRecords(source(), '"', separator)) {
    const split = findUnreadable(record.text) ?? splitValues(record, separator);
    // Only its quotes make several lines one row.
    if ('message' in split && record.text.includes('\n')) throw unclosed(record.line);
    if ('values' in split && split.values.every((value) => value === '')) continue;
    if ('values' in split && mustEnd && !record.isEnded) {
      const message = 'does not end with a line break, so part of it may be missing: was the input cut off?';
      yield { line: record.line, message };
    } else yield { line: record.line, ...split };
  }
}

/** Reads to the end of the first line that is not blank. */
async function readHead(texts: AsyncIterator<string>): Promise<string> {
  let head = '';
  while (head.length <= MAX_ROW_LENGTH && !head.trimStart().includes('\n')) {
    const next = await texts.next();
    if (next.done === true) break;
    head += next.value;
  }
  return head;
}

/**
 * Accepts stray quotes, so the next record is still found. Takes text and lines from the bytes: the library keeps half
 * a trimmed character, and counts `\r\n` in quotes twice.
 */
async function* readRecords(
  texts: AsyncIterable<string>,
  quote: '"' | null,
  delimiter: Delimiter,
): AsyncGenerator<RawRecord> {
  let found: { readonly values: readonly string[]; readonly end: number }[] = [];
  const parser = parse({
    ...{ delimiter, quote, record_delimiter: '\n', max_record_size: MAX_ROW_BYTES },
    ...{ bom: true, ltrim: true, relax_quotes: true, relax_column_count: true },
    // A failed stream would lose the earlier records.
    on_record: (values, { bytes }) => {
      found.push({ values, end: bytes });
      return null;
    },
  });
  parser.on('error', () => undefined);
  let kept = Buffer.alloc(0);
  let keptFrom = 0;
  let line = 1;
  const take = function* (error: Error | null | undefined): Generator<RawRecord> {
    for (const { values, end } of found) {
      const text = kept.toString('utf8', 0, end - keptFrom);
      const isEnded = text.endsWith('\n');
      yield { line, text: (isEnded ? text.slice(0, -1) : text).replace(/^\uFEFF/, ''), isEnded, values };
      kept = kept.subarray(end - keptFrom);
      keptFrom = end;
      line += text.split('\n').length - 1;
    }
    found = [];
    if (error instanceof CsvError) throw unclosed(line, error);
  };
  for await (const text of texts) {
    const bytes = Buffer.from(text);
    kept = Buffer.concat([kept, bytes]);
    yield* take(await new Promise<Error | null | undefined>((resolve) => parser.write(bytes, resolve)));
  }
  yield* take(await new Promise<Error | null | undefined>((resolve) => parser.end(resolve)));
}

function findUnreadable(text: string): { readonly message: string } | undefined {
  if (text.length > MAX_ROW_LENGTH) return { message: `is longer than ${MAX_ROW_LENGTH} characters` };
  // A decoder's replacement for bytes that are not UTF-8.
  return text.includes('\uFFFD') ? { message: 'is not UTF-8 text: save the file as UTF-8' } : undefined;
}

function splitValues(
  { text, values }: RawRecord,
  delimiter: Delimiter,
): { readonly values: readonly string[] } | { readonly message: string } {
  if (!text.includes('"')) return { values: values.map((value) => value.trim()) };
  let quotes = 0;
  const cast = (value: string, { quoting }: { readonly quoting: boolean }): string => {
    quotes += (quoting ? 2 : 0) + 2 * countQuotes(value);
    return value;
  };
  try {
    const records = parseText(text, { delimiter, trim: true, record_delimiter: '\n', cast });
    // The library reads `"" "x"` as x, and drops two quotes.
    const isWhole = quotes === countQuotes(text);
    if (isWhole && records[0] !== undefined && records.length === 1) return { values: records[0] };
    return { message: 'cannot be split into values: enclose a value in quotes once, and double a quote in it' };
  } catch (error) {
    if (!(error instanceof TextCsvError)) throw error;
    const at = Number(error['column']) + 1;
    const message = `value ${at} contains a quote but is not quoted: enclose the value in quotes and double the quote`;
    return { message };
  }
}

function countQuotes(text: string): number {
  return text.split('"').length - 1;
}

function unclosed(line: number, error?: CsvError): InvalidInputError {
  const message =
    error?.code === 'CSV_MAX_RECORD_SIZE'
      ? `has no end within ${MAX_ROW_BYTES} bytes: is a quote not closed?`
      : 'opens a quote that is not closed correctly, so the rows after it cannot be separated';
  return new InvalidInputError([{ field: `line ${line}`, message }]);
}

export function unreadableRow(line: number, message: string): Row {
  return { line, problems: [{ field: 'row', message }] };
}
