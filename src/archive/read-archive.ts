import { open } from 'node:fs/promises';
import { isMissing } from '../journal/journal-files.js';
import type { Payout } from '../ledger/payout.js';
import { isPayoutState } from '../ledger/states.js';
import { listDays, type ArchiveDay, type ArchiveFolder } from './archive-files.js';
import { listMembers, readBytes, readMember } from './archive-member.js';

export interface ArchivedPayout extends Payout {
  readonly archivedIn: string;
}

export interface ReadOptions {
  /** First day, as `2030-01-31`. @defaultValue the oldest */
  readonly from?: string | undefined;
  /** Last day. @defaultValue the newest */
  readonly to?: string | undefined;
  /** Whether to open a file. @defaultValue every file */
  readonly wants?: (path: string) => Promise<boolean>;
  /** Whether to parse a line. @defaultValue every line */
  readonly mayMatch?: (line: string) => boolean;
  /** Called for each part that cannot be read. Whole parts are still read. */
  readonly onDamage: (message: string) => void;
}

/**
 * Reads the newest day first and each day from its end, so the newer line of a payout counts. At most one member and
 * one day's ids are in memory.
 * @returns the payouts, some at a time
 * @throws Error if the folder or a file cannot be read
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

async function* readBackwards(path: string, onDamage: ReadOptions['onDamage']): AsyncGenerator<string[]> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    // The file was moved after the folder was listed.
    onDamage(`${path} is gone`);
  });
  if (file === undefined) return;
  try {
    const { members, strayBytes } = await listMembers(file);
    if (strayBytes > 0) {
      onDamage(
        `${path} has ${strayBytes} bytes that make no sense: a worker ended while it wrote them. Their payouts are still in Redis, or in another file. If this file is a copy, it is not whole`,
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

/** Every line begins with the payoutId, which has no characters that JSON escapes. */
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

/** A field's text in a line, for `mayMatch`. */
export function lineFragment(field: keyof Payout, value: string): string {
  return `"${field}":${JSON.stringify(value)}`;
}
