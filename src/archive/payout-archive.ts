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
 * Lets one account at a time write. Each write that hangs on a network folder holds one of the process's few file
 * threads. Without turns, all accounts could take all threads, and no send would reach its journal.
 */
export class ArchiveTurns {
  #writing: Promise<unknown> | undefined;
  readonly #waitMs: number;

  /** @param waitMs - how long a write waits for earlier ones */
  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  /** Writes after all earlier writes. @throws Error if those take too long, or what the write throws */
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

const processTurns = new ArchiveTurns();

/** Limit of archived payouts that are not removed; more would be a leak. */
const MAX_REMEMBERED = 10_000;

interface KeptLine {
  readonly line: string;
  readonly path: string;
  /** Where it, or a later line, ends. */
  readonly end: number;
}

export class PayoutArchive {
  readonly #folder: ArchiveFolder;
  /** Each file's size after this process's last complete write. */
  readonly #ends = new Map<string, number>();
  /** Payouts not known to be removed, by payoutId. If Redis fails in between, they are not written again. */
  readonly #kept = new Map<string, KeptLine>();
  readonly #turns: ArchiveTurns;

  constructor(folder: ArchiveFolder, turns = processTurns) {
    this.#folder = folder;
    this.#turns = turns;
  }

  /**
   * Returns once all are on disk. A payout kept earlier and not removed may be in a file twice, the newer line last.
   * @throws Error naming the folder if a payout may not be on disk, or another write takes too long
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

  /** False if the file was deleted, or the disk exchanged, since the write. */
  async #isKept({ payoutId }: Payout, line: string): Promise<boolean> {
    const kept = this.#kept.get(payoutId);
    return kept?.line === line && ((await sizeOf(kept.path)) ?? 0) >= kept.end;
  }

  forget(payoutIds: readonly string[]): void {
    for (const payoutId of payoutIds) this.#kept.delete(payoutId);
  }

  async #append(day: string, payouts: readonly Payout[], lines: string): Promise<Omit<KeptLine, 'line'>> {
    const member = await toMember(lines);
    await makeFolder(this.#folder);
    const { path, size } = await this.#chooseFile(day);
    this.#ends.delete(path);
    // The index first: if it cannot be written, each retry would lengthen the file.
    await extendIndex(indexPath(path), payouts);
    await appendDurably(path, member);
    const end = size + member.length;
    this.#ends.set(path, end);
    return { path, end };
  }

  /** The day's first file without a torn end. A torn file stays as it is. */
  async #chooseFile(day: string): Promise<{ path: string; size: number }> {
    for (let number = 1; ; number += 1) {
      const path = filePath(this.#folder, day, number);
      const size = (await sizeOf(path)) ?? 0;
      // Also for an empty file: its maker may have ended before its name was synced.
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

/** A deleted index must not be rebuilt: it would lack the file's earlier payouts. */
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

/** zlib's error for damaged data, not an error of the disk. */
function isDecompressionError(error: unknown): boolean {
  return /^(Z_|ERR_BUFFER_TOO_LARGE)/.test((error as NodeJS.ErrnoException).code ?? '');
}
