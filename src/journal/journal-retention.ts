import { rm } from 'node:fs/promises';
import { listFiles, readLines, syncFolder, type JournalFile } from './journal-files.js';
import type { JournalLine } from './journal-line.js';
import { parseLine } from './parse-line.js';
import { INTENT_VALID_AT_MOST_MS } from './sent-attempts.js';

const DAY_MS = 24 * 60 * 60 * 1000;
/** The longest validity of a signed act after its use. */
const ACT_LIFETIME_MS = 7 * DAY_MS;
/** Tolerance for a wrong clock: an old intent must not pass as new. */
const GRACE_MS = DAY_MS;

/** Latest expiry (ms) of any intent or act that was used up to the file's last write. */
export function latestExpiry({ changedAt }: JournalFile): number {
  return Math.ceil(changedAt) + INTENT_VALID_AT_MOST_MS;
}

export function isExpired(file: JournalFile, now: number): boolean {
  return latestExpiry(file) + GRACE_MS < now;
}

export interface OldFile {
  readonly path: string;
  /** Latest expiry (ms) of the intents and acts it names. */
  readonly expiresAt: number;
}

export class JournalRetention {
  readonly #path: string;
  readonly #keepMs: number;
  /** By inode. A full file does not change. */
  readonly #expiries = new Map<number, number>();

  constructor(path: string, keepMs: number) {
    this.#path = path;
    this.#keepMs = keepMs;
  }

  /**
   * The files to remove, oldest first and without a gap. The newest full file stays, because every start reads it.
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

/** Removes files, oldest first, with a folder sync after each. Otherwise a power cut could leave a gap. */
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
