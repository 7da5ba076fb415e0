import { constants, mkdir, open, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isMissing, syncFolder } from '../journal/journal-files.js';

/**
 * The archive: the final payouts that retention removed from Redis, in files beside each other, a folder for each account:
 * `<dir>/<platformId>/2030-01-31.jsonl.gz` has those that came into their final state on that day (UTC). Files are only ever
 * appended to. Where a process ended while it wrote, the day continues in `2030-01-31.2.jsonl.gz`. Beside each is its index.
 */

/** The archive of one account. */
export interface ArchiveFolder {
  /** `PAYOUT_ARCHIVE_DIR`. */
  readonly dir: string;
  readonly platformId: number;
}

/** The files of one day, in the order in which they were begun. */
export interface ArchiveDay {
  /** As `2030-01-31`. */
  readonly day: string;
  readonly paths: readonly string[];
}

/** Addresses and amounts stand in it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

const ENDING = '.jsonl.gz';
const NAME = /^(\d{4}-\d\d-\d\d)(?:\.([1-9]\d*))?\.jsonl\.gz$/;
const DAY_LENGTH = '2030-01-31'.length;

/** The day of a time as ISO 8601 in UTC. */
export function dayOf(time: string): string {
  return time.slice(0, DAY_LENGTH);
}

export function folderPath({ dir, platformId }: ArchiveFolder): string {
  return join(resolve(dir), String(platformId));
}

/** @param number - 1 for the first file of the day */
export function filePath(folder: ArchiveFolder, day: string, number: number): string {
  return join(folderPath(folder), `${day}${number === 1 ? '' : `.${number}`}${ENDING}`);
}

/** The index of a file: see archive-index.ts. */
export function indexPath(path: string): string {
  return `${path.slice(0, -ENDING.length)}.index`;
}

/** The days that have files, the newest first; none where there is no folder. @throws Error when it cannot be read */
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

/** Makes the folder of the account, with those above it, and has each name on disk. */
export async function makeFolder(folder: ArchiveFolder): Promise<void> {
  const path = folderPath(folder);
  const first = await mkdir(path, { recursive: true, mode: FOLDER_MODE });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(made);
}

/**
 * Makes an empty file with its index, and has their names on disk. Files that are there stay as they are. The index comes first:
 * a file that has payouts and no index is searched as a whole.
 */
export async function makeFile(path: string): Promise<void> {
  for (const each of [indexPath(path), path]) await (await open(each, 'a', FILE_MODE)).close();
  await syncFolder(path);
  await syncFolder(dirname(path));
}

/** Appends to a file that is there, and returns once that is on disk. @throws Error */
export async function appendDurably(path: string, bytes: Uint8Array): Promise<void> {
  // Without making it: the name of a new file would not be on disk.
  const file = await open(path, constants.O_WRONLY | constants.O_APPEND);
  try {
    await file.appendFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
