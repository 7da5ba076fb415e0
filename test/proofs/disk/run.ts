import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { print, runCommand } from '../command-line.js';
import { program, runPlanted, type SourceChange } from '../planted-source.js';
import { crashStates, type DiskState, type EarlierFile } from './crash-states.js';
import { RecordedFs, type DiskCall } from './recorded-fs.js';
import { LEDGER, NEW_JOURNAL, NEXT_WEEK, SCENARIOS, SIGNED_FILES } from './scenarios.js';
import { signedUntil, type Scenario, type SignedBefore } from './scenarios.js';

const USAGE = `npm run disk-crashes                    cuts the power at every system call of the journal, and opens what the disk may hold
npm run disk-crashes -- --scenario NAME only where the journal begins like this
npm run disk-crashes -- --planted       plants mistakes: each has to be found
`;

const { values } = parseArgs({
  options: {
    scenario: { type: 'string' },
    planted: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const PLATFORM_ID = 1;
const DAY_MS = 24 * 60 * 60 * 1000;

/** A send whose first byte may have left once this many calls were made. */
interface Sent {
  readonly payoutId: string;
  readonly after: number;
}

interface Recording {
  readonly before: readonly EarlierFile[];
  readonly calls: readonly DiskCall[];
  readonly sent: readonly Sent[];
}

/** One process is killed after some calls, the next one opens the journal; both send what they can. */
async function record(scenario: Scenario, dir: string, killedAfter: number): Promise<Recording> {
  mkdirSync(dir);
  const { files, fullDaysAgo = 0 } = scenario;
  const writtenAt = (Date.now() - fullDaysAgo * DAY_MS) / 1_000;
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(dir, name), text());
    utimesSync(join(dir, name), writtenAt, writtenAt);
  }
  const before = readFolder(dir);
  const disk = new RecordedFs();
  const sent: Sent[] = [];
  disk.start();
  try {
    disk.killAfter(killedAfter);
    // A killed process never ends: its turn is over when nothing of it happens any more. One that is only slow is not killed.
    await Promise.race([work('p', sent, disk, { dir, scenario }), disk.killed.then(async () => untilStill(disk))]);
    disk.revive();
    await work('q', sent, disk, { dir, scenario });
  } finally {
    await disk.stop();
  }
  return { before, calls: disk.calls, sent };
}

async function work(
  prefix: string,
  sent: Sent[],
  disk: RecordedFs,
  { dir, scenario }: { readonly dir: string; readonly scenario: Scenario },
): Promise<void> {
  const journal = await FileSendJournal.open({ dir, platformId: PLATFORM_ID, keepDays: 1 });
  const signed = scenario.signed === undefined ? {} : { signed: signedUntil(NEXT_WEEK) };
  if (journal.ledger === undefined) await journal.bind(LEDGER);
  for (let number = 1; number <= 2; number += 1) {
    const payoutId = `${prefix}${number}`;
    const { sends, token } = journal.ledger ?? LEDGER;
    const attempt = { payoutId, attempt: 1, token: payoutId };
    const request = { paymentId: 1, amount: '1', addressTo: 'w' };
    const place = { epoch: 1, sends: sends + 1, after: { sends, token } };
    await journal.append({ ...attempt, ...place, request, at: 0, ...signed });
    sent.push({ payoutId, after: disk.calls.length });
    journal.noteOutcome(attempt, { kind: 'accepted', txhash: payoutId }, 0);
  }
  await journal.close();
}

async function untilStill({ calls }: RecordedFs): Promise<void> {
  for (let seen = -1; seen !== calls.length;) {
    seen = calls.length;
    await delay(15);
  }
}

function readFolder(dir: string): EarlierFile[] {
  return readdirSync(dir).map((name) => {
    const path = join(dir, name);
    return { path, inode: statSync(path).ino, bytes: readFileSync(path) };
  });
}

/** @returns what the journal does not know of what may have been sent; undefined when it knows all */
async function findForgotten(
  { files, hasHole }: DiskState,
  dir: string,
  { sent, signed }: { readonly sent: readonly string[]; readonly signed: readonly SignedBefore[] },
): Promise<string | undefined> {
  mkdirSync(dir);
  try {
    for (const [path, bytes] of files) writeFileSync(join(dir, basename(path)), bytes);
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
    rmSync(dir, { recursive: true });
  }
}

/** A clock that is set back makes what has expired valid again: the journal notes what it has forgotten. */
function mayBeSentAgain(journal: FileSendJournal, { payoutId, expiresAt }: SignedBefore): boolean {
  const isKnown = journal.unclearedAttempts(payoutId, Infinity).length > 0;
  return !isKnown && (expiresAt > Date.now() || expiresAt > journal.prunedUpTo);
}

async function check(scenario: Scenario, root: string): Promise<boolean> {
  let states = 0;
  let failed = 0;
  let cuts = 0;
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
        if (failed <= 3) print(`  killed after ${killedAfter} calls, power cut after ${cut}: ${problem}`);
        if (failed <= 3) print(`    ${calls.slice(0, cut).map(describe).join(', ')}`);
      }
    }
    rmSync(dir, { recursive: true });
  }
  print(`${scenario.name}: ${states} disks after ${cuts} cuts, ${failed} lost a send`);
  return failed === 0;
}

function describe(call: DiskCall): string {
  return 'path' in call ? `${call.kind} ${basename(call.path)}` : call.kind;
}

/** Changes of the source that only a power cut shows. */
const PLANTED: readonly (SourceChange & { readonly name: string; readonly scenario: string })[] = [
  {
    name: "the journal's folder not synced",
    scenario: NEW_JOURNAL,
    file: 'journal/journal-files.ts',
    edits: [['    await folder.sync();\n', '']],
  },
  {
    name: 'nothing synced on opening',
    scenario: NEW_JOURNAL,
    file: 'journal/journal-files.ts',
    edits: [['    await file.sync();\n    await syncFolder(path);\n', '']],
  },
  {
    name: 'a send not synced before its first byte',
    scenario: NEW_JOURNAL,
    file: 'journal/file-send-journal.ts',
    edits: [['this.#file.datasync()', 'undefined']],
  },
  {
    name: 'files removed before it is noted what is forgotten',
    scenario: SIGNED_FILES,
    file: 'journal/file-send-journal.ts',
    edits: [
      ['    const prunedUpTo = Math', '    await removeFiles(old);\n    const prunedUpTo = Math'],
      ['prunedUpTo });\n    await removeFiles(old);', 'prunedUpTo });'],
    ],
  },
  {
    name: 'files removed without the folder synced in between',
    scenario: SIGNED_FILES,
    file: 'journal/journal-retention.ts',
    edits: [['    await syncFolder(path);\n', '']],
  },
  {
    name: 'a file removed whose sends have not expired',
    scenario: SIGNED_FILES,
    file: 'journal/journal-retention.ts',
    edits: [['if (expiresAt + GRACE_MS >= now) break;', '']],
  },
];

async function plantAll(): Promise<boolean> {
  let missed = 0;
  for (const { name, scenario, ...change } of PLANTED) {
    const proof = program('test/proofs/disk/run.ts', '--scenario', scenario);
    const found = /killed after .*/.exec(await runPlanted(change, proof))?.[0];
    if (found === undefined) missed += 1;
    print(`${name.padEnd(52)} ${found ?? 'NOT FOUND'}`);
  }
  print(`${PLANTED.length - missed} passed, ${missed} failed`);
  return missed === 0;
}

async function main(): Promise<boolean> {
  if (values.planted) return plantAll();
  const scenarios = SCENARIOS.filter(({ name }) => values.scenario === undefined || values.scenario === name);
  if (scenarios.length === 0) throw new Error(`There are: ${SCENARIOS.map(({ name }) => name).join(', ')}`);
  const root = mkdtempSync(join(tmpdir(), 'payout-queue-disk-'));
  let failed = 0;
  try {
    for (const scenario of scenarios) if (!(await check(scenario, root))) failed += 1;
  } finally {
    rmSync(root, { recursive: true });
  }
  print(`${scenarios.length - failed} passed, ${failed} failed`);
  return failed === 0;
}

await runCommand(main, USAGE, values.help);
