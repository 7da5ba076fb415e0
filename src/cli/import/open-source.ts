import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { InvalidInputError, StoppedError } from '../../base/errors.js';
import { INPUT_COLUMNS, toCsvColumn } from '../../ledger/payout-csv.js';
import { parseJson } from './parse-payout-texts.js';
import { PAYOUT_TABLE, readCsvRows, type CsvTable } from './read-csv-rows.js';
import { readLines, unreadableRow, type Delimiter, type Row } from './read-records.js';

/** A file with payouts, or stdin, opened for reading. */
export interface ImportSource {
  /** The path as it was given, `stdin` for `-`. */
  readonly name: string;
  /** Undefined if it is unknown, as with a pipe. */
  readonly sizeBytes: number | undefined;
  readonly rows: AsyncIterable<Row>;
  /** Bytes read so far. */
  readonly bytesRead: () => number;
  /** The name of a payout's field in this file. */
  readonly nameField: (field: string) => string;
}

/** The path that means stdin. */
export const STDIN = '-';

const JSON_EXTENSIONS = ['.json', '.jsonl', '.ndjson'];

/**
 * Opens a file as CSV or JSON lines: by its extension, else as JSON lines if the first character is `{`.
 * @param signal - ends the reading, also of an input that is silent
 * @param options - what a CSV file lists, and what separates its values
 * @defaultValue options payouts to enqueue; what the first line has
 * @throws InvalidInputError when it cannot be read; the rows throw it as well
 * @throws StoppedError when the signal was aborted; the rows throw it as well
 */
export async function openSource(
  path: string,
  signal: AbortSignal,
  { table = PAYOUT_TABLE, delimiter }: { readonly table?: CsvTable; readonly delimiter?: Delimiter } = {},
): Promise<ImportSource> {
  const isStdin = path === STDIN;
  const explain = (error: unknown): unknown => explainFailure(error, path, signal);
  try {
    const file = isStdin ? undefined : createReadStream(path);
    const bytes = addAbortSignal(signal, file ?? process.stdin);
    const isJson = await holdsJson(bytes, extname(path).toLowerCase());
    const sizeBytes = isStdin ? undefined : await readFileSize(path);
    // A program that dies in the middle of a row closes its pipe just as one that is done.
    const mustEnd = sizeBytes === undefined;
    return {
      name: isStdin ? 'stdin' : path,
      sizeBytes,
      rows: explaining(isJson ? readJsonRows(bytes) : readCsvRows(bytes, table, { mustEnd, delimiter }), explain),
      bytesRead: () => file?.bytesRead ?? 0,
      nameField: isJson ? (field) => field : toCsvColumn,
    };
  } catch (error) {
    throw explain(error);
  }
}

/** @returns undefined for a pipe */
async function readFileSize(path: string): Promise<number | undefined> {
  const found = await stat(path);
  return found.isFile() ? found.size : undefined;
}

async function holdsJson(bytes: Readable, extension: string): Promise<boolean> {
  await once(bytes, 'readable');
  const first = bytes.read() as Buffer | null;
  if (first !== null) bytes.unshift(first);
  if (extension === '.csv' || JSON_EXTENSIONS.includes(extension)) return extension !== '.csv';
  // trim() also removes a byte order mark.
  return first !== null && first.toString().trim().startsWith('{');
}

async function* explaining(rows: AsyncIterable<Row>, explain: (error: unknown) => unknown): AsyncGenerator<Row> {
  try {
    yield* rows;
  } catch (error) {
    throw explain(error);
  }
}

function explainFailure(error: unknown, path: string, signal: AbortSignal): unknown {
  if (signal.aborted) return new StoppedError('Stopped while reading; nothing was changed');
  const isSystemError = (error as NodeJS.ErrnoException).syscall !== undefined;
  if (!isSystemError) return error;
  return new InvalidInputError([{ field: path, message: `cannot be read: ${(error as Error).message}` }]);
}

/** Reads one object a line, with the fields of the producer's input, in its spelling or the API's. */
async function* readJsonRows(bytes: Readable): AsyncGenerator<Row> {
  for await (const { line, text, message } of readLines(bytes)) {
    try {
      yield message === undefined ? toRow(line, parseJson(text, 'row')) : unreadableRow(line, message);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      yield { line, problems: error.problems };
    }
  }
}

const FIELD_OF_COLUMN: ReadonlyMap<string, string> = new Map(Object.entries(INPUT_COLUMNS));

/** The fields as the library spells them: `payout_id` is `payoutId`. Both in one row are an error. */
function toRow(line: number, given: unknown): Row {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return unreadableRow(line, 'is JSON, but not an object with the fields of a payout');
  }
  const spellings = new Map<string, string>();
  for (const name of Object.keys(given)) {
    const field = FIELD_OF_COLUMN.get(name) ?? name;
    const message = `is the same field as ${spellings.get(field) ?? ''}: give one`;
    if (spellings.has(field)) return { line, problems: [{ field: name, message }] };
    spellings.set(field, name);
  }
  // A field `__proto__` becomes one as any other: assigned, it would give the row fields that nobody wrote into it.
  const input = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [FIELD_OF_COLUMN.get(name) ?? name, value]),
  );
  return { line, input };
}
