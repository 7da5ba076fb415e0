import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../errors.js';
import { toCsvColumn } from './csv-columns.js';
import { readCsvRows } from './read-csv-rows.js';
import { readJsonRows } from './read-json-rows.js';
import type { Row } from './row.js';

/** A file with payouts, or stdin, that is about to be read. */
export interface ImportSource {
  /** As it was given, `stdin` for `-`. */
  readonly name: string;
  /** 0 where it is not known. */
  readonly sizeBytes: number;
  readonly rows: AsyncIterable<Row>;
  /** How far the rows have been read. */
  readonly bytesRead: () => number;
  /** What a payout's field is called in this file. */
  readonly nameField: (field: string) => string;
}

const JSON_EXTENSIONS = ['.json', '.jsonl', '.ndjson'];

/**
 * Opens a file as CSV or JSON lines: as its name ends, or else JSON lines where the first character is `{`.
 * @param path - `-` for stdin
 * @throws InvalidInputError when it cannot be read
 */
export async function openSource(path: string, stdin: Readable = process.stdin): Promise<ImportSource> {
  try {
    const file = path === '-' ? undefined : createReadStream(path);
    const bytes = file ?? stdin;
    const isJson = await holdsJson(bytes, extname(path).toLowerCase());
    return {
      name: file === undefined ? 'stdin' : path,
      sizeBytes: file === undefined ? 0 : (await stat(path)).size,
      rows: isJson ? readJsonRows(bytes) : readCsvRows(bytes),
      bytesRead: () => file?.bytesRead ?? 0,
      nameField: isJson ? (field) => field : toCsvColumn,
    };
  } catch (error) {
    throw new InvalidInputError([{ field: path, message: `cannot be read: ${(error as Error).message}` }]);
  }
}

async function holdsJson(bytes: Readable, extension: string): Promise<boolean> {
  await once(bytes, 'readable');
  const first = bytes.read() as Buffer | null;
  if (first !== null) bytes.unshift(first);
  if (extension === '.csv' || JSON_EXTENSIONS.includes(extension)) return extension !== '.csv';
  // trim() takes a byte order mark for a space.
  return first !== null && first.toString().trim().startsWith('{');
}
