import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSendJournal, type FileSendJournalOptions } from '../../../src/journal/file-send-journal.js';
import type { SendLine, JournalLine } from '../../../src/journal/journal-line.js';

/** A folder for the journal of account 1, and the processes that have it open. */
export interface JournalFolder {
  readonly dir: string;
  /** The present file, or a former one by its number. */
  path(number?: number): string;
  open(options?: Partial<FileSendJournalOptions>): Promise<FileSendJournal>;
  /** Writes a file as it is given, past any process. */
  write(lines: readonly unknown[], number?: number): Promise<void>;
  add(text: string): Promise<void>;
  text(number?: number): Promise<string>;
  /** The lines of a file. */
  lines(number?: number): Promise<unknown[]>;
  close(): Promise<void>;
}

export async function makeJournalFolder(): Promise<JournalFolder> {
  const dir = await mkdtemp(join(tmpdir(), 'journal-'));
  const opened: FileSendJournal[] = [];
  const path = (number?: number): string => join(dir, `1.journal${number === undefined ? '' : `.${number}`}`);
  const text = async (number?: number): Promise<string> => readFile(path(number), 'utf8');
  return {
    dir,
    path,
    async open(options = {}) {
      const journal = await FileSendJournal.open({ dir, platformId: 1, ...options });
      opened.push(journal);
      return journal;
    },
    async write(lines, number) {
      await writeFile(path(number), toText(lines));
    },
    add: async (added) => appendFile(path(), added),
    text,
    lines: async (number) =>
      (await text(number))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    async close() {
      for (const journal of opened) await journal.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function toText(lines: readonly unknown[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

export const HEADER: JournalLine = { v: 2, journalId: 'abcdef012345' };
export const LEDGER = { ledgerId: 'ledger', epoch: 2, sends: 0, token: '' };

/** The send of this number, after the one before it. */
export function aSend(payoutId: string, sends: number, given: Partial<SendLine> = {}): SendLine {
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  const after = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
  return {
    payoutId,
    attempt: 1,
    token: `t-${sends}`,
    epoch: 3,
    sends,
    after,
    at: 1_900_000_000_000,
    request,
    ...given,
  };
}

/** A send whose line is as long as this, in bytes or a little more. */
export function aLongSend(payoutId: string, sends: number, bytes: number): SendLine {
  const { request, ...send } = aSend(payoutId, sends);
  return { ...send, request: { ...request, addressTo: 'x'.repeat(bytes) } };
}

/** An outcome of a send, as it is written. */
export function outcomeOf({ payoutId, attempt, token }: SendLine, kind: 'accepted' | 'not_sent'): JournalLine {
  const outcome = kind === 'accepted' ? { kind, txhash: `h-${payoutId}` } : { kind, reason: 'the connection ended' };
  return { payoutId, attempt, token, outcome, at: 1_900_000_000_500 };
}

const MIB = 1024 * 1024;
const FULL_MIB = 16;

/** A file at which a journal of 16 MiB begins a new one with its next send: `a-1` … `a-16`, of 1 MiB each. */
export function fullFile(name: string, first = 1): JournalLine[] {
  return [HEADER, LEDGER, ...longSends(name, first)];
}

/** As many sends as fill a file, each a long one. */
export function longSends(name: string, first: number): SendLine[] {
  return Array.from({ length: FULL_MIB }, (_, index) => aLongSend(`${name}-${index + 1}`, first + index, MIB));
}
