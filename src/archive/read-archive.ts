import { open } from 'node:fs/promises';
import { isMissing } from '../journal/journal-files.js';
import type { Payout } from '../ledger/payout.js';
import { isPayoutState } from '../ledger/states.js';
import { listDays, type ArchiveDay, type ArchiveFolder } from './archive-files.js';
import { listMembers, readBytes, readMember } from './archive-member.js';

/** A payout that was removed from Redis. */
export interface ArchivedPayout extends Payout {
  /** The file in which it is. */
  readonly archivedIn: string;
}

/** What of an archive is read. */
export interface ReadOptions {
  /** The first day, as `2030-01-31`. @defaultValue the oldest */
  readonly from?: string | undefined;
  /** The last day. @defaultValue the newest */
  readonly to?: string | undefined;
  /** Whether a file is opened at all. @defaultValue every file */
  readonly wants?: (path: string) => Promise<boolean>;
  /** Whether a line may be one that is looked for: what it refuses is not parsed. @defaultValue every line */
  readonly mayMatch?: (line: string) => boolean;
  /** Told of each thing that could not be read. What is whole is read nevertheless. */
  readonly onDamage: (message: string) => void;
}

/**
 * Reads the archive, the newest day first, and in a day the lines that were written last first: of a payout that was written
 * twice, the newer line counts. At no time more than one member, and the ids of one day, are in memory.
 * @returns the payouts, some at a time
 * @throws Error when the folder or a file cannot be read
 */
export async function* readArchive(folder: ArchiveFolder, options: ReadOptions): AsyncGenerator<ArchivedPayout[]> {
  const { from = '', to = '9' } = options;
  for (const day of await listDays(folder)) {
    if (day.day >= from && day.day <= to) yield* readDay(day, options);
  }
}

async function* readDay(
  { paths }: ArchiveDay,
  { wants = async () => Promise.resolve(true), mayMatch = () => true, onDamage }: ReadOptions,
): AsyncGenerator<ArchivedPayout[]> {
  const seen = new Set<string>();
  for (const path of paths.toReversed()) {
    if (!(await wants(path))) continue;
    for await (const lines of readBackwards(path, onDamage)) {
      const payouts = lines.flatMap((line) => {
        const payoutId = readId(line);
        if (payoutId !== undefined && seen.has(payoutId)) return [];
        if (payoutId !== undefined) seen.add(payoutId);
        return mayMatch(line) ? (parseLine(line, path, onDamage) ?? []) : [];
      });
      if (payouts.length > 0) yield payouts;
    }
  }
}

/** The lines of a file, one member at a time, from its end. */
async function* readBackwards(path: string, onDamage: ReadOptions['onDamage']): AsyncGenerator<string[]> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    // It was moved since the folder was listed.
    onDamage(`${path} is gone`);
  });
  if (file === undefined) return;
  try {
    const { members, strayBytes } = await listMembers(file);
    if (strayBytes > 0) {
      onDamage(
        `${path} has ${strayBytes} bytes that make no sense: a worker ended while it wrote them, and the payouts of them are still in Redis or stand in another place. Where the file is a copy, it is not whole`,
      );
    }
    for (const member of members.toReversed()) {
      const bytes = await readBytes(file, member);
      const lines = decompress(bytes, (message) => {
        onDamage(`${path} is damaged at byte ${member.offset}, for ${member.size} bytes: ${message}`);
      });
      yield lines.reverse();
    }
  } finally {
    await file.close();
  }
}

function decompress(bytes: Buffer, onDamage: (message: string) => void): string[] {
  try {
    return readMember(bytes);
  } catch (error) {
    onDamage((error as Error).message);
    return [];
  }
}

/** A payoutId has no characters that JSON would escape, and every line begins with it. */
function readId(line: string): string | undefined {
  return /^\{"payoutId":"([^"\\]*)"/.exec(line)?.[1];
}

function parseLine(line: string, path: string, onDamage: ReadOptions['onDamage']): ArchivedPayout | undefined {
  try {
    const payout = JSON.parse(line) as Payout;
    if (typeof payout.payoutId !== 'string' || !isPayoutState(payout.state) || !Array.isArray(payout.history)) {
      throw new Error('a line has no payout');
    }
    return { ...payout, archivedIn: path };
  } catch (error) {
    onDamage(`${path} is damaged: ${(error as Error).message}`);
    return undefined;
  }
}

/** What a value looks like in a line, for `mayMatch`. */
export function lineFragment(field: keyof Payout, value: string): string {
  return `"${field}":${JSON.stringify(value)}`;
}
