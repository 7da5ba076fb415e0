import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { InvalidInputError, type Problem, StoppedError } from '../../base/errors.js';
import { INPUT_COLUMNS, toCsvColumn } from '../../ledger/payout-csv.js';
import { STDIN } from '../context/confirm.js';
import { parseJson } from '../../base/parse-json.js';
import { PAYOUT_TABLE, readCsvRows, type CsvTable } from './read-csv-rows.js';
import { readLines, unreadableRow, type Delimiter, type Row } from './read-records.js';

export interface ImportSource {
  readonly name: string;
  /** Undefined for a pipe. */
  readonly sizeBytes: number | undefined;
  readonly rows: AsyncIterable<Row>;
  readonly bytesRead: () => number;
  /** Name of a payout's field in this file. */
  readonly nameField: (field: string) => string;
}

const JSON_EXTENSIONS = ['.json', '.jsonl', '.ndjson'];

/**
 * The extension decides, else a first character `{` means JSON lines.
 * @param signal - ends the reading, even of a silent input
 * @param table - of a CSV file. @defaultValue payouts to enqueue
 * @param delimiter - of a CSV file. @defaultValue that of its first line
 * @throws InvalidInputError if it cannot be read, also from the rows
 * @throws StoppedError if the signal was aborted, also from the rows
 */
export async function openSource(
  path: string,
  signal: AbortSignal,
  table: CsvTable = PAYOUT_TABLE,
  delimiter?: Delimiter,
): Promise<ImportSource> {
  const isStdin = path === STDIN;
  const explain = (error: unknown): unknown => explainFailure(error, path, signal);
  try {
    const file = isStdin ? undefined : createReadStream(path);
    const bytes = addAbortSignal(signal, file ?? process.stdin);
    const isJson = await holdsJson(bytes, extname(path).toLowerCase());
    const sizeBytes = isStdin ? undefined : await readFileSize(path);
    // A program that dies within a row closes its pipe like one that is done.
    const mustEnd = sizeBytes === undefined;
    return {
      name: isStdin ? 'stdin' : path,
      sizeBytes,
      rows: explaining(isJson ? readJsonRows(bytes) : readCsvRows(bytes, table, mustEnd, delimiter), explain),
      bytesRead: () => file?.bytesRead ?? 0,
      nameField: isJson ? (field) => field : toCsvColumn,
    };
  } catch (error) {
    throw explain(error);
  }
}

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

/** Accepts the producer's spelling of fields, or the API's. */
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

/** `payout_id` becomes `payoutId`. Both in one row are an error. */
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
  // Assigning a field `__proto__` would give the row fields that no one wrote.
  const input = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [FIELD_OF_COLUMN.get(name) ?? name, value]),
  );
  return { line, input };
}

/**
 * Reads every row, and reports each that cannot be used.
 * @param use - throws an InvalidInputError for such a row
 * @returns how many rows cannot be used
 */
export async function readEachRow(
  { rows, nameField }: Pick<ImportSource, 'rows' | 'nameField'>,
  onProblem: (line: number, problem: Problem) => void,
  use: (input: Readonly<Record<string, unknown>>, line: number) => void | Promise<void>,
): Promise<number> {
  let invalid = 0;
  for await (const row of rows) {
    try {
      if ('problems' in row) throw new InvalidInputError(row.problems);
      await use(row.input, row.line);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      invalid += 1;
      for (const { field, message } of error.problems) onProblem(row.line, { field: nameField(field), message });
    }
  }
  return invalid;
}
