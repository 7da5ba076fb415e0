import { rm } from 'node:fs/promises';
import { listFiles, readLines, syncFolder, type JournalFile } from './journal-files.js';
import type { JournalLine } from './journal-line.js';
import { parseLine } from './parse-line.js';
import { INTENT_VALID_AT_MOST_MS } from './sent-attempts.js';

const DAY_MS = 24 * 60 * 60 * 1000;
/** A signed act is valid for at most this long after it was used. */
const ACT_LIFETIME_MS = 7 * DAY_MS;
/** So much later a clock may be wrong by without an intent being taken for a new one. */
const GRACE_MS = DAY_MS;

/** Until when (ms) an intent, or an act, may be valid that was sent with, or used, when the file was written to. */
export function latestExpiry({ changedAt }: JournalFile): number {
  return Math.ceil(changedAt) + INTENT_VALID_AT_MOST_MS;
}

/** Whether nothing that a full file says can be valid still. @param now - wall clock, ms */
export function isExpired(file: JournalFile, now: number): boolean {
  return latestExpiry(file) + GRACE_MS < now;
}

/** A file that may be removed. */
export interface OldFile {
  readonly path: string;
  /** The latest time (ms) at which an intent or an act that it names expires; of an unsigned send, may expire. */
  readonly expiresAt: number;
}

/** Finds the files that were kept long enough. */
export class JournalRetention {
  readonly #path: string;
  readonly #keepMs: number;
  /** By inode: a file that is full does not change. */
  readonly #expiries = new Map<number, number>();

  /** @param keepMs - how long a full file is kept, at least */
  constructor(path: string, keepMs: number) {
    this.#path = path;
    this.#keepMs = keepMs;
  }

  /**
   * The files to be removed, from the oldest on: none is missing between two. The newest full one stays: it is read at every
   * start.
   * @param now - wall clock, ms
   */
  async findOld(now: number): Promise<OldFile[]> {
    const old: OldFile[] = [];
    const former = (await listFiles(this.#path)).filter((file) => file.path !== this.#path).slice(0, -1);
    for (const file of former) {
      if (file.changedAt >= now - this.#keepMs || !isExpired(file, now)) break;
      const expiresAt = await this.#findExpiry(file);
      if (expiresAt + GRACE_MS >= now) break;
      old.push({ path: file.path, expiresAt });
    }
    return old;
  }

  async #findExpiry(file: JournalFile): Promise<number> {
    const found = this.#expiries.get(file.inode) ?? (await readExpiry(file));
    this.#expiries.set(file.inode, found);
    return Math.max(found, latestExpiry(file));
  }
}

/** Removes files, the oldest first. After a power cut none of them may be there still behind one that is gone: that is a gap. */
export async function removeFiles(files: readonly OldFile[]): Promise<void> {
  for (const { path } of files) {
    await rm(path, { force: true });
    await syncFolder(path);
  }
}

async function readExpiry(file: JournalFile): Promise<number> {
  let latest = 0;
  for await (const { text } of readLines(file, 0)) {
    if (!/"(?:signed|resumed)":/.test(text)) continue;
    const line = parseLine(text, file.path)?.line;
    if (line !== undefined) latest = Math.max(latest, expiryOf(line));
  }
  return latest;
}

function expiryOf(line: JournalLine): number {
  if ('resumed' in line) return line.resumed.at + ACT_LIFETIME_MS;
  if (!('signed' in line) || line.signed === undefined) return 0;
  const { act, expiresAt } = line.signed;
  return act === undefined ? expiresAt : Math.max(expiresAt, line.at + ACT_LIFETIME_MS);
}
