import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { hashLine, toChainedLines } from '../../../src/journal/line-chain.js';
import { FLAG, plantEach, print, program, report, runCommand, runInCopy, TEXT } from '../command-line.js';
import type { SourceChange } from '../command-line.js';
import { crashStates, recordDisk, type DiskCall, type DiskState } from './crash-states.js';

type Scenario = Readonly<{
  name: string;
  files: Readonly<Record<string, () => string>>;
  /** What has to be known after a crash, or noted as forgotten once it has expired; with it, sends are signed. */
  signed?: readonly SignedBefore[];
  /** Files that were full are this old, and removed after a day. */
  fullDaysAgo?: number;
}>;

type SignedBefore = Readonly<{ payoutId: string; expiresAt: number }>;

const LEDGER = { ledgerId: 'ledger', epoch: 1, sends: 0, token: '' };

const REQUEST = { paymentId: 1, amount: '1', addressTo: 'w' };
const JOURNAL_ID = '0123456789ab';
const HEADER: JournalLine = { v: 1, journalId: JOURNAL_ID, bornAt: 1 };
const DAY_MS = 24 * 60 * 60 * 1000;
const NOW = Date.now();

/** A file is full at 16 MiB: one outcome after another, of the same send. */
function almostFullFile() {
  const size = 16 * 1024 * 1024 - 150;
  const line: JournalLine = { peers: [{ journalId: 'other', host: 'h', dir: 'd'.repeat(100_000) }] };
  const length = 100_000 + 150;
  return toChainedLines([HEADER, ...Array<JournalLine>(Math.floor(size / length)).fill(line)], []);
}

const signedUntil = (expiresAt: number) => ({
  ...{ intent: 'e'.repeat(64), key: 'shop', issuedAt: expiresAt - 7 * DAY_MS, expiresAt },
  proof: { signature: 'S', audience: 'a' },
});

const NEXT_WEEK = NOW + 6 * DAY_MS;

const SIGNED: readonly SignedBefore[] = [
  { payoutId: 'expired0', expiresAt: NOW - 10 * DAY_MS },
  { payoutId: 'expired1', expiresAt: NOW - 9 * DAY_MS },
  { payoutId: 'valid1', expiresAt: NOW + DAY_MS },
  { payoutId: 'expired2', expiresAt: NOW - 8 * DAY_MS },
  { payoutId: 'valid2', expiresAt: NEXT_WEEK },
];

function rotatedFiles() {
  let prev: readonly string[] = [];
  const files = SIGNED.map((send, index) => {
    const text = toChainedLines(linesOf(send, index), prev);
    prev = [hashLine(text.trimEnd().split('\n').at(-1) ?? '')];
    return [index === SIGNED.length - 1 ? '1.journal' : `1.journal.${index + 1}`, () => text] as const;
  });
  return Object.fromEntries(files);
}

function linesOf({ payoutId, expiresAt }: SignedBefore, sends: number): JournalLine[] {
  const tokenOf = (number: number) => (number === 0 ? '' : `token${number}`);
  const before = { sends, token: tokenOf(sends) };
  return [
    HEADER,
    { ...LEDGER, ...before },
    {
      ...{ payoutId, attempt: 1, token: tokenOf(sends + 1), epoch: 1, sends: sends + 1 },
      ...{ after: before, request: REQUEST, inFlightMs: 0, at: 0, signed: signedUntil(expiresAt) },
    },
  ];
}

const NEW_JOURNAL = 'a new journal';
const SIGNED_FILES = 'signed sends in files that are removed';

const SCENARIOS: readonly Scenario[] = [
  { name: NEW_JOURNAL, files: {} },
  { name: 'a line torn by a crash', files: { '1.journal': () => `${toChainedLines([HEADER], [])}{"ledgerId":"led` } },
  { name: 'a file that becomes full', files: { '1.journal': almostFullFile } },
  { name: SIGNED_FILES, files: rotatedFiles(), signed: SIGNED, fullDaysAgo: 9 },
];

const USAGE = `npm run disk-crashes                    cuts the power at every system call of the journal, and opens what the disk may hold
npm run disk-crashes -- --scenario NAME only where the journal begins like this
npm run disk-crashes -- --planted       plants mistakes: each has to be found
`;

const { values } = parseArgs({ options: { scenario: TEXT, planted: FLAG, help: FLAG } });

const PLATFORM_ID = 1;

/** One process is killed after some calls, the next one opens the journal; both send what they can. */
async function record({ files, fullDaysAgo = 0, signed }: Scenario, dir: string, killedAfter: number) {
  fs.mkdirSync(dir);
  const writtenAt = (Date.now() - fullDaysAgo * DAY_MS) / 1_000;
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(join(dir, name), text());
    fs.utimesSync(join(dir, name), writtenAt, writtenAt);
  }
  const before = readFolder(dir);
  /** Sends whose first byte may have left once so many calls were made. */
  const sent: { payoutId: string; after: number }[] = [];
  const disk = recordDisk(killedAfter);
  const work = async (prefix: string) => {
    const journal = await FileSendJournal.open({ dir, platformId: PLATFORM_ID, keepDays: 1 });
    if (journal.ledger === undefined) await journal.bind(LEDGER);
    for (const payoutId of [`${prefix}1`, `${prefix}2`]) {
      const { sends, token } = journal.ledger ?? LEDGER;
      const attempt = { payoutId, attempt: 1, token: payoutId };
      const send = { epoch: 1, sends: sends + 1, after: { sends, token }, request: REQUEST, inFlightMs: 0, at: 0 };
      await journal.append({ ...attempt, ...send, ...(signed && { signed: signedUntil(NEXT_WEEK) }) });
      sent.push({ payoutId, after: disk.calls.length });
      journal.noteOutcome(attempt, { kind: 'accepted', gatewayId: payoutId }, 0);
    }
    await journal.close();
  };
  try {
    // A killed process never ends: its turn is over when nothing of it happens any more.
    await Promise.race([work('p'), disk.killed.then(async () => untilStill(disk.calls))]);
    disk.revive();
    await work('q');
  } finally {
    await disk.stop();
  }
  return { before, calls: disk.calls, sent };
}

async function untilStill(calls: readonly DiskCall[]) {
  for (let seen = -1; seen !== calls.length;) {
    seen = calls.length;
    await delay(15);
  }
}

function readFolder(dir: string) {
  return fs.readdirSync(dir).map((name) => {
    const path = join(dir, name);
    return { path, inode: fs.statSync(path).ino, bytes: fs.readFileSync(path) };
  });
}

/** @returns what the journal does not know of what may have been sent; undefined when it knows all */
async function findForgotten(
  { files, hasHole }: DiskState,
  dir: string,
  { sent, signed }: Readonly<{ sent: readonly string[]; signed: readonly SignedBefore[] }>,
) {
  fs.mkdirSync(dir);
  try {
    for (const [path, bytes] of files) fs.writeFileSync(join(dir, basename(path)), bytes);
    const journal = await FileSendJournal.open({ dir, platformId: PLATFORM_ID });
    await journal.close();
    const forgotten = sent.filter((payoutId) => !journal.knows(payoutId, 1));
    if (forgotten.length > 0) return `${forgotten.join(', ')} may have been sent, and the journal has no entry`;
    const sendable = signed.filter((send) => mayBeSentAgain(journal, send)).map(({ payoutId }) => payoutId);
    return sendable.length === 0 ? undefined : `${sendable.join(', ')} may be sent again: neither known nor expired`;
  } catch (error) {
    // A line that makes no sense, with others behind it: the worker refuses to send, which is safe.
    if (hasHole) return undefined;
    return `the journal cannot be opened: ${(error as Error).message}`;
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
}

/** A clock that is set back makes what has expired valid again: the journal notes what it has forgotten. */
function mayBeSentAgain(journal: FileSendJournal, { payoutId, expiresAt }: SignedBefore) {
  const isKnown = journal.unclearedAttempts(payoutId, Infinity).length > 0;
  return !isKnown && (expiresAt > Date.now() || expiresAt > journal.prunedUpTo);
}

async function check(scenario: Scenario, root: string) {
  let [states, failed, cuts] = [0, 0, 0];
  for (let killedAfter = 0, isWhole = false; !isWhole; killedAfter += 1) {
    const dir = join(root, `run${killedAfter}`);
    const { before, calls, sent } = await record(scenario, dir, killedAfter);
    // The first process was not killed before it had done all.
    isWhole = sent.length === 4 && calls.length > 0 && sent[1] !== undefined && killedAfter >= calls.length;
    for (let cut = killedAfter; cut <= calls.length; cut += 1) {
      cuts += 1;
      const known = sent.filter(({ after }) => after <= cut).map(({ payoutId }) => payoutId);
      for (const state of crashStates(before, calls.slice(0, cut))) {
        states += 1;
        const problem = await findForgotten(state, join(root, 'after'), { sent: known, signed: scenario.signed ?? [] });
        if (problem === undefined) continue;
        failed += 1;
        if (failed > 3) continue;
        print(`  killed after ${killedAfter} calls, power cut after ${cut}: ${problem}`);
        print(`    ${calls.slice(0, cut).map(describe).join(', ')}`);
      }
    }
    fs.rmSync(dir, { recursive: true });
  }
  print(`${scenario.name}: ${states} disks after ${cuts} cuts, ${failed} lost a send`);
  return failed === 0;
}

const describe = (call: DiskCall) => ('path' in call ? `${call.kind} ${basename(call.path)}` : call.kind);

type Planted = readonly [name: string, scenario: string, file: string, ...edits: SourceChange['edits']];

const PLANTED: readonly Planted[] = [
  ["the journal's folder not synced", NEW_JOURNAL, 'journal-files', ['    await folder.sync();\n', '']],
  [
    'nothing synced on opening',
    NEW_JOURNAL,
    'journal-files',
    ['    await file.sync();\n    await syncFolder(path);\n', ''],
  ],
  ['a send not synced before its first byte', NEW_JOURNAL, 'file-send-journal', ['this.#file.datasync()', 'undefined']],
  [
    'files removed before it is noted what is forgotten',
    SIGNED_FILES,
    'file-send-journal',
    ['    const prunedUpTo = Math', '    await removeFiles(old);\n    const prunedUpTo = Math'],
    ['prunedUpTo });\n    await removeFiles(old);', 'prunedUpTo });'],
  ],
  [
    'files removed without the folder synced in between',
    SIGNED_FILES,
    'journal-retention',
    ['    await syncFolder(path);\n', ''],
  ],
  [
    'a file removed whose sends have not expired',
    SIGNED_FILES,
    'journal-retention',
    ['if (expiresAt + GRACE_MS >= now) break;', ''],
  ],
];

async function findPlanted([, scenario, file, ...edits]: Planted) {
  const proof = program('test/proofs/disk/run.ts', '--scenario', scenario);
  return /killed after .*/.exec(await runInCopy({ file: `journal/${file}.ts`, edits }, proof))?.[0];
}

async function main() {
  if (values.planted) return plantEach(PLANTED, ([name]) => name, findPlanted);
  const scenarios = SCENARIOS.filter(({ name }) => values.scenario === undefined || values.scenario === name);
  if (scenarios.length === 0) throw new Error(`There are: ${SCENARIOS.map(({ name }) => name).join(', ')}`);
  const root = fs.mkdtempSync(join(tmpdir(), 'payout-queue-disk-'));
  let failed = 0;
  try {
    for (const scenario of scenarios) if (!(await check(scenario, root))) failed += 1;
  } finally {
    fs.rmSync(root, { recursive: true });
  }
  return report(scenarios.length - failed, failed);
}

await runCommand(main, USAGE, values.help);
