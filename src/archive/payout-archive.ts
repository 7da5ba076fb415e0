import { open, stat } from 'node:fs/promises';
import { within } from '../base/clock.js';
import { isMissing } from '../journal/journal-files.js';
import type { Payout } from '../ledger/payout.js';
import {
  appendDurably,
  dayOf,
  filePath,
  folderPath,
  indexPath,
  makeFile,
  makeFolder,
  type ArchiveFolder,
} from './archive-files.js';
import { toIndexEntries } from './archive-index.js';
import { listMembers, readBytes, readMember, toMember } from './archive-member.js';

const WAIT_MS = 3_000;

/**
 * Has one account at a time write to the archive. A folder on a network may hang, and each write that hangs keeps one of the
 * process's few threads for files: with an account each they would all be taken, and no send could be written to its journal.
 */
export class ArchiveTurns {
  #writing: Promise<unknown> | undefined;
  readonly #waitMs: number;

  /** @param waitMs - for how long a write waits for those before it */
  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  /** Writes once no other write is under way. @throws Error when those before take too long, or what the write throws */
  async take(write: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    while (this.#writing !== undefined) {
      const leftMs = startedAt + this.#waitMs - performance.now();
      const ended = this.#writing.then(() => true);
      if (leftMs <= 0 || (await within(leftMs, ended)) === undefined) {
        throw new Error('an earlier write, of this account or another, has not ended');
      }
    }
    const written = write();
    this.#writing = written.catch(() => undefined);
    try {
      await written;
    } finally {
      this.#writing = undefined;
    }
  }
}

/** The turns of all accounts of this process. */
const processTurns = new ArchiveTurns();

/** Payouts that were kept and not removed: more than this would be a leak. */
const MAX_REMEMBERED = 10_000;

/** What this process has written of a payout. */
interface KeptLine {
  readonly line: string;
  readonly path: string;
  /** Where it ends, or a line behind it. */
  readonly end: number;
}

/** What a worker writes before it removes payouts from Redis. */
export class PayoutArchive {
  readonly #folder: ArchiveFolder;
  /** By file, its size when this process had written it to the end. */
  readonly #ends = new Map<string, number>();
  /** By payoutId, those that are not known to be removed: where Redis fails in between, they are not written again. */
  readonly #kept = new Map<string, KeptLine>();
  readonly #turns: ArchiveTurns;

  constructor(folder: ArchiveFolder, turns = processTurns) {
    this.#folder = folder;
    this.#turns = turns;
  }

  /**
   * Returns once every payout is on disk. One that was kept before without being removed may be in a file twice, the newer line
   * behind the older.
   * @throws Error naming the folder when one of them may not be on disk, or another write takes too long
   */
  async keep(payouts: readonly Payout[]): Promise<void> {
    try {
      await this.#turns.take(async () => this.#keep(payouts));
    } catch (error) {
      throw this.#trouble(error as Error);
    }
  }

  #trouble(cause: Error): Error {
    return new Error(
      `The archive ${folderPath(this.#folder)} cannot be written: ${cause.message}. Free space there, or set PAYOUT_ARCHIVE_DIR to a folder that the worker can write; until then no payout is removed`,
      { cause },
    );
  }

  async #keep(payouts: readonly Payout[]): Promise<void> {
    const lines = new Map<Payout, string>();
    for (const payout of payouts) {
      const line = `${JSON.stringify(payout)}\n`;
      if (!(await this.#isKept(payout, line))) lines.set(payout, line);
    }
    if (this.#kept.size > MAX_REMEMBERED) this.#kept.clear();
    for (const [day, ofDay] of groupByDay([...lines.keys()])) {
      const place = await this.#append(day, ofDay, ofDay.map((each) => lines.get(each)).join(''));
      for (const payout of ofDay) this.#kept.set(payout.payoutId, { line: lines.get(payout) ?? '', ...place });
    }
  }

  /** Not where somebody has deleted the file since, or exchanged the disk. */
  async #isKept({ payoutId }: Payout, line: string): Promise<boolean> {
    const kept = this.#kept.get(payoutId);
    return kept?.line === line && ((await sizeOf(kept.path)) ?? 0) >= kept.end;
  }

  /** These were removed from Redis. */
  forget(payoutIds: readonly string[]): void {
    for (const payoutId of payoutIds) this.#kept.delete(payoutId);
  }

  async #append(day: string, payouts: readonly Payout[], lines: string): Promise<Omit<KeptLine, 'line'>> {
    const member = await toMember(lines);
    await makeFolder(this.#folder);
    const { path, size } = await this.#chooseFile(day);
    this.#ends.delete(path);
    // The index first: where it cannot be written, each try would lengthen the file.
    await extendIndex(indexPath(path), payouts);
    await appendDurably(path, member);
    const end = size + member.length;
    this.#ends.set(path, end);
    return { path, end };
  }

  /** The first file of the day that nobody left in the middle of a member. Such a file stays as it is. */
  async #chooseFile(day: string): Promise<{ path: string; size: number }> {
    for (let number = 1; ; number += 1) {
      const path = filePath(this.#folder, day, number);
      const size = (await sizeOf(path)) ?? 0;
      // Also of an empty one: who made it may have ended before its name was on disk.
      if (size === 0) await makeFile(path);
      if (size === 0 || size === this.#ends.get(path) || (await endsWhole(path))) return { path, size };
    }
  }
}

function groupByDay(payouts: readonly Payout[]): Map<string, Payout[]> {
  const days = new Map<string, Payout[]>();
  for (const payout of payouts) {
    const day = dayOf(payout.updatedAt);
    days.set(day, [...(days.get(day) ?? []), payout]);
  }
  return days;
}

/** One that somebody deleted would not have what stands in the file already. */
async function extendIndex(path: string, payouts: readonly Payout[]): Promise<void> {
  if ((await sizeOf(path)) !== undefined) await appendDurably(path, toIndexEntries(payouts));
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether the file ends with a whole member. */
async function endsWhole(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { members } = await listMembers(file);
    const last = members.at(-1);
    if (last === undefined || last.offset + last.size !== (await file.stat()).size) return false;
    readMember(await readBytes(file, last));
    return true;
  } catch (error) {
    if (isDecompressionError(error)) return false;
    throw error;
  } finally {
    await file.close();
  }
}

/** What zlib says of damaged data; an error of the disk is none. */
function isDecompressionError(error: unknown): boolean {
  return /^(Z_|ERR_BUFFER_TOO_LARGE)/.test((error as NodeJS.ErrnoException).code ?? '');
}
