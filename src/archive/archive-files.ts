import { constants, open, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isMissing, makeFolder as makeFolders, syncFolder } from '../journal/journal-files.js';

/**
 * The archive of final payouts that retention removed from Redis. `<dir>/<platformId>/2030-01-31.jsonl.gz` has those
 * that reached their final state on that day (UTC). Files are only appended to. If a process ends during a write, the
 * day continues in `2030-01-31.2.jsonl.gz`. Each file has an index.
 */

export interface ArchiveFolder {
  /** `PAYOUT_ARCHIVE_DIR`. */
  readonly dir: string;
  readonly platformId: number;
}

/** The files of one day, oldest first. */
export interface ArchiveDay {
  readonly day: string;
  readonly paths: readonly string[];
}

/** The files hold addresses and amounts. */
const FILE_MODE = 0o600;

const ENDING = '.jsonl.gz';
const NAME = /^(\d{4}-\d\d-\d\d)(?:\.([1-9]\d*))?\.jsonl\.gz$/;
const DAY_LENGTH = '2030-01-31'.length;

export function dayOf(time: string): string {
  return time.slice(0, DAY_LENGTH);
}

export function folderPath({ dir, platformId }: ArchiveFolder): string {
  return join(resolve(dir), String(platformId));
}

export function filePath(folder: ArchiveFolder, day: string, number: number): string {
  return join(folderPath(folder), `${day}${number === 1 ? '' : `.${number}`}${ENDING}`);
}

export function indexPath(path: string): string {
  return `${path.slice(0, -ENDING.length)}.index`;
}

/** Days with files, newest first; none without a folder. @throws Error if it cannot be read */
export async function listDays(folder: ArchiveFolder): Promise<ArchiveDay[]> {
  const numbers = new Map<string, number[]>();
  for (const name of await readNames(folderPath(folder))) {
    const [, day, number = '1'] = NAME.exec(name) ?? [];
    if (day !== undefined) numbers.set(day, [...(numbers.get(day) ?? []), Number(number)]);
  }
  return [...numbers]
    .sort(([one], [other]) => (one < other ? 1 : -1))
    .map(([day, found]) => ({
      day,
      paths: found.sort((one, other) => one - other).map((number) => filePath(folder, day, number)),
    }));
}

async function readNames(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Makes the account's folder and its parents, and syncs each name to disk. */
export async function makeFolder(folder: ArchiveFolder): Promise<void> {
  const path = folderPath(folder);
  const first = await makeFolders(path);
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(made);
}

/**
 * Makes an empty file with its index and syncs their names. Existing files stay. The index comes first: a file with
 * payouts and no index is searched in full.
 */
export async function makeFile(path: string): Promise<void> {
  for (const each of [indexPath(path), path]) await (await open(each, 'a', FILE_MODE)).close();
  await syncFolder(path);
  await syncFolder(dirname(path));
}

/** Appends to an existing file and syncs it. @throws Error */
export async function appendDurably(path: string, bytes: Uint8Array): Promise<void> {
  // Without O_CREAT: the name of a new file would not be synced.
  const file = await open(path, constants.O_WRONLY | constants.O_APPEND);
  try {
    await file.appendFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
