import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { InvalidInputError, StoppedError } from '../../errors.js';
import { toCsvColumn } from '../../csv-columns.js';
import { readCsvRows } from './read-csv-rows.js';
import { readJsonRows } from './read-json-rows.js';
import type { Delimiter } from './split-csv-record.js';
import type { Row } from './row.js';

/** A file with payouts, or stdin, opened for reading. */
export interface ImportSource {
  /** The path as it was given, `stdin` for `-`. */
  readonly name: string;
  /** Undefined where it is unknown, as with a pipe. */
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
 * Opens a file as CSV or JSON lines: by its extension, else as JSON lines where the first character is `{`.
 * @param signal - ends the reading, also of an input that is silent
 * @param options - how the rows of a CSV file are parsed, and what separates its values
 * @defaultValue options payouts to enqueue; what the first line has
 * @throws InvalidInputError when it cannot be read; the rows throw it as well
 * @throws StoppedError when the signal was aborted; the rows throw it as well
 */
export async function openSource(
  path: string,
  signal: AbortSignal,
  { readCsv = readCsvRows, delimiter }: { readonly readCsv?: typeof readCsvRows; readonly delimiter?: Delimiter } = {},
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
      rows: explaining(isJson ? readJsonRows(bytes) : readCsv(bytes, { mustEnd, delimiter }), explain),
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
