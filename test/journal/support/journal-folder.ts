import { afterEach, beforeEach, expect } from '@jest/globals';
import { appendFile, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSendJournal, type FileSendJournalOptions } from '../../../src/journal/file-send-journal.js';
import { listFiles } from '../../../src/journal/journal-files.js';
import type { JournalItem, JournalLine, SendLine } from '../../../src/journal/journal-line.js';
import type { StoredJournal } from '../../../src/journal/journal-reader.js';
import { hashLine, toChainedLines } from '../../../src/journal/line-chain.js';
import { isTorn } from '../../../src/journal/parse-line.js';

/** The folder of the running test, in a file that called `useFolder`. */
export let folder: JournalFolder;

/** Gives each test of a file a folder of its own. */
export function useFolder() {
  beforeEach(async () => {
    folder = await makeJournalFolder();
  });
  afterEach(async () => folder.close());
}

export type JournalFolder = Awaited<ReturnType<typeof makeJournalFolder>>;

/** A folder for the journal of account 1, and the processes that have it open. A file is the present one, or a former one by its number. */
export async function makeJournalFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'journal-'));
  const opened: FileSendJournal[] = [];
  const path = (number?: number) => join(dir, `1.journal${number === undefined ? '' : `.${number}`}`);
  const text = async (number?: number) => readFile(path(number), 'utf8');
  const texts = async (number?: number) => (await text(number)).trimEnd().split('\n');
  /** Writes a file past any process. The lines are chained where they begin with a header of that format. */
  const write = async (lines: readonly unknown[], number?: number): Promise<void> => {
    const former = (await listFiles(path())).filter((file) => file.path !== path()).at(-1);
    await writeFile(path(number), toFileText(lines, former && (await readFile(former.path, 'utf8'))));
  };
  /** Makes a file so long that the next send in it is its last; torn lines cost the least to read. */
  const fillUp = async (number?: number): Promise<void> =>
    appendFile(path(number), `${'x'.repeat(MIB)} torn\n`.repeat(FULL_MIB));
  const open = async (options: Partial<FileSendJournalOptions> = {}): Promise<FileSendJournal> => {
    const journal = await FileSendJournal.open({ dir, platformId: 1, ...options });
    opened.push(journal);
    return journal;
  };
  return {
    ...{ dir, path, open, write },
    async bound(options?: Partial<FileSendJournalOptions>): Promise<FileSendJournal> {
      const journal = await open(options);
      await journal.bind(LEDGER);
      return journal;
    },
    /** Writes a file of 16 short sends, `a-1` … `a-16`, at which a journal begins a new one with its next send. */
    async writeFull(name: string, number?: number) {
      const sends = Array.from({ length: FULL_MIB }, (_, index) => aSend(`${name}-${index + 1}`, index + 1));
      await write([HEADER, LEDGER, ...sends], number);
      await fillUp(number);
    },
    fillUp,
    add: async (added: string) => appendFile(path(), added),
    /** Adds lines past any process, chained to the last one there. */
    addLines: async (lines: readonly unknown[]) =>
      appendFile(path(), toChainedLines(lines as JournalLine[], lastHash(await text()))),
    text,
    texts,
    /** The lines of a file that crashes did not tear, without their hashes. */
    lines: async (number?: number): Promise<unknown[]> =>
      (await texts(number))
        .filter((line) => !isTorn(line))
        .map((line) =>
          Object.fromEntries(Object.entries(JSON.parse(line) as object).filter(([name]) => name !== 'prev')),
        ),
    async close() {
      for (const journal of opened) await journal.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function toText(lines: readonly unknown[]) {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** The text of a file of these lines, behind one that has this text. */
export function toFileText(lines: readonly unknown[], former = '') {
  const isChained = (lines[0] as { v?: number } | undefined)?.v === 1;
  return isChained ? toChainedLines(lines as JournalLine[], lastHash(former)) : toText(lines);
}

/** What a line behind this text names. */
export function lastHash(text: string) {
  return text
    .split('\n')
    .slice(0, -1)
    .filter((line) => !isTorn(line))
    .slice(-1)
    .map(hashLine);
}

export const HEADER: JournalLine = { v: 1, journalId: 'abcdef012345', bornAt: 1_800_000_000_000 };
export const LEDGER = { ledgerId: 'ledger', epoch: 2, sends: 0, token: '' };

/** The send of this number, after the one before it. */
export function aSend(payoutId: string, sends: number, given: Partial<SendLine> = {}): SendLine {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  const after = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
  const times = { epoch: 3, sends, after, inFlightMs: 31_000, at: 1_900_000_000_000 };
  return { payoutId, attempt: 1, token: `t-${sends}`, ...times, request, ...given };
}

export function headerOf(journalId: string | undefined): object {
  return { v: 1, journalId, bornAt: expect.any(Number) as unknown };
}

export function outcomeOf({ payoutId, attempt, token }: SendLine, kind: 'accepted' | 'not_sent'): JournalLine {
  const outcome = kind === 'accepted' ? { kind, gatewayId: `h-${payoutId}` } : { kind, reason: 'the connection ended' };
  return { payoutId, attempt, token, outcome, at: 1_900_000_000_500 };
}

const MIB = 1024 * 1024;
const FULL_MIB = 16;

/** As many sends as fill a file, each a long one. */
export function longSends(name: string, first: number): SendLine[] {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'x'.repeat(MIB) };
  return Array.from({ length: FULL_MIB }, (_, index) => aSend(`${name}-${index + 1}`, first + index, { request }));
}

export const files = async () => (await readdir(folder.dir)).sort();

export async function age(number: number, days: number) {
  const at = new Date(Date.now() - days * 24 * 60 * 60_000);
  await utimes(folder.path(number), at, at);
}

export async function itemsOf(journal: Pick<StoredJournal, 'items'> | undefined): Promise<JournalItem[]> {
  const items: JournalItem[] = [];
  for await (const item of journal?.items() ?? []) items.push(item);
  return items;
}

export async function sendsIn(journal: Pick<StoredJournal, 'items'> | undefined) {
  return (await itemsOf(journal)).flatMap((item) => ('payoutId' in item ? [item.payoutId] : []));
}
