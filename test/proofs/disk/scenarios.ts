import { hashLine, toChainedLines } from '../../../src/journal/line-chain.js';
import type { HeaderLine, JournalLine, SendLine, SignedSend } from '../../../src/journal/journal-line.js';

/** What is on disk before a crash, and how the processes use it. */
export interface Scenario {
  readonly name: string;
  readonly files: Readonly<Record<string, () => string>>;
  /** What has to be known after a crash, or noted as forgotten once it has expired; with it, sends are signed. */
  readonly signed?: readonly SignedBefore[];
  /** Files that were full are this old, and removed after a day. */
  readonly fullDaysAgo?: number;
}

export interface SignedBefore {
  readonly payoutId: string;
  readonly expiresAt: number;
}

export const LEDGER = { ledgerId: 'ledger', epoch: 1, sends: 0, token: '' };

const JOURNAL_ID = '0123456789ab';
const HEADER = `{"v":2,"journalId":"${JOURNAL_ID}"}\n`;
const DAY_MS = 24 * 60 * 60 * 1000;
const NOW = Date.now();

/** A file is full at 16 MiB: one outcome after another, of the same send. */
function almostFullFile(): string {
  const size = 16 * 1024 * 1024 - 150;
  const line = `${JSON.stringify({ peers: [{ journalId: 'other', host: 'h', dir: 'd'.repeat(100_000) }] })}\n`;
  return HEADER + line.repeat(Math.floor(size / line.length));
}

export function signedUntil(expiresAt: number): SignedSend {
  return { intent: 'e'.repeat(64), key: 'shop', issuedAt: expiresAt - 7 * DAY_MS, expiresAt };
}

export const NEXT_WEEK = NOW + 6 * DAY_MS;

/** One signed send in each file, from the oldest on: the first two files may be removed, the third must not. */
const SIGNED: readonly SignedBefore[] = [
  { payoutId: 'expired0', expiresAt: NOW - 10 * DAY_MS },
  { payoutId: 'expired1', expiresAt: NOW - 9 * DAY_MS },
  { payoutId: 'valid1', expiresAt: NOW + DAY_MS },
  { payoutId: 'expired2', expiresAt: NOW - 8 * DAY_MS },
  { payoutId: 'valid2', expiresAt: NEXT_WEEK },
];

/** The files of a journal, each chained to the one before it; the last one is the present. */
function rotatedFiles(): Record<string, () => string> {
  let prev: readonly string[] = [];
  const texts = SIGNED.map((send, index) => {
    const text = toChainedLines(linesOf(send, index), prev);
    prev = [hashLine(text.trimEnd().split('\n').at(-1) ?? '')];
    return text;
  });
  return Object.fromEntries(
    texts.map((text, index) => [index === texts.length - 1 ? '1.journal' : `1.journal.${index + 1}`, () => text]),
  );
}

function linesOf({ payoutId, expiresAt }: SignedBefore, sends: number): JournalLine[] {
  const token = sends === 0 ? '' : tokenOf(sends);
  const header: HeaderLine = { v: 3, journalId: JOURNAL_ID, bornAt: 1 };
  const request = { paymentId: 1, amount: '1', addressTo: 'w' };
  const send: SendLine = {
    ...{ payoutId, attempt: 1, token: tokenOf(sends + 1), epoch: 1, sends: sends + 1 },
    ...{ after: { sends, token }, request, at: 0, signed: signedUntil(expiresAt) },
  };
  return [header, { ...LEDGER, sends, token }, send];
}

const tokenOf = (number: number): string => `token${number}`;

export const NEW_JOURNAL = 'a new journal';

export const SIGNED_FILES = 'signed sends in files that are removed';

export const SCENARIOS: readonly Scenario[] = [
  { name: NEW_JOURNAL, files: {} },
  { name: 'a line torn by a crash', files: { '1.journal': () => `${HEADER}{"ledgerId":"led` } },
  { name: 'a file that becomes full', files: { '1.journal': almostFullFile } },
  { name: SIGNED_FILES, files: rotatedFiles(), signed: SIGNED, fullDaysAgo: 9 },
];
