import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { print, runCommand } from '../command-line.js';
import { program, runPlanted, type SourceChange } from '../planted-source.js';
import { crashStates, type DiskState, type EarlierFile } from './crash-states.js';
import { RecordedFs, type DiskCall } from './recorded-fs.js';

const USAGE = `npm run disk-crashes                cuts the power at every system call of the journal, and opens what the disk may hold
npm run disk-crashes -- --planted   plants mistakes: each has to be found
`;

const { values } = parseArgs({
  options: { planted: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
});

const PLATFORM_ID = 1;
const HEADER = '{"v":2,"journalId":"0123456789ab"}\n';
const LEDGER = { ledgerId: 'ledger', epoch: 1, sends: 0, token: '' };

interface Scenario {
  readonly name: string;
  /** What is on disk before, by file name. */
  readonly files: Readonly<Record<string, () => string>>;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'a new journal', files: {} },
  { name: 'a line torn by a crash', files: { '1.journal': () => `${HEADER}{"ledgerId":"led` } },
  { name: 'a file that becomes full', files: { '1.journal': almostFullFile } },
];

/** A file is full at 16 MiB: one outcome after another, of the same send. */
function almostFullFile(): string {
  const size = 16 * 1024 * 1024 - 150;
  const line = `${JSON.stringify({ peers: [{ journalId: 'other', host: 'h', dir: 'd'.repeat(100_000) }] })}\n`;
  return HEADER + line.repeat(Math.floor(size / line.length));
}

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
async function record({ files }: Scenario, dir: string, killedAfter: number): Promise<Recording> {
  mkdirSync(dir);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text());
  const before = readFolder(dir);
  const disk = new RecordedFs();
  const sent: Sent[] = [];
  disk.start();
  try {
    disk.killAfter(killedAfter);
    // A killed process never ends: its turn is over when nothing of it happens any more. One that is only slow is not killed.
    await Promise.race([work('p', sent, disk, dir), disk.killed.then(async () => untilStill(disk))]);
    disk.revive();
    await work('q', sent, disk, dir);
  } finally {
    await disk.stop();
  }
  return { before, calls: disk.calls, sent };
}

async function work(prefix: string, sent: Sent[], disk: RecordedFs, dir: string): Promise<void> {
  const journal = await FileSendJournal.open({ dir, platformId: PLATFORM_ID });
  if (journal.ledger === undefined) await journal.bind(LEDGER);
  for (let number = 1; number <= 2; number += 1) {
    const payoutId = `${prefix}${number}`;
    const { sends, token } = journal.ledger ?? LEDGER;
    const attempt = { payoutId, attempt: 1, token: payoutId };
    const request = { paymentId: 1, amount: '1', addressTo: 'w' };
    await journal.append({ ...attempt, epoch: 1, sends: sends + 1, after: { sends, token }, request, at: 0 });
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
  sent: readonly string[],
): Promise<string | undefined> {
  mkdirSync(dir);
  try {
    for (const [path, bytes] of files) writeFileSync(join(dir, basename(path)), bytes);
    const journal = await FileSendJournal.open({ dir, platformId: PLATFORM_ID });
    await journal.close();
    const forgotten = sent.filter((payoutId) => !journal.knows(payoutId, 1));
    return forgotten.length === 0
      ? undefined
      : `${forgotten.join(', ')} may have been sent, and the journal has no entry`;
  } catch (error) {
    // A line that makes no sense, with others behind it: the worker refuses to send, which is safe.
    if (hasHole) return undefined;
    return `the journal cannot be opened: ${(error as Error).message}`;
  } finally {
    rmSync(dir, { recursive: true });
  }
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
        const problem = await findForgotten(state, join(root, 'after'), known);
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
const PLANTED: readonly (SourceChange & { readonly name: string })[] = [
  {
    name: "the journal's folder not synced",
    file: 'journal/journal-files.ts',
    edits: [['    await folder.sync();\n', '']],
  },
  {
    name: 'nothing synced on opening',
    file: 'journal/journal-files.ts',
    edits: [['    await file.sync();\n    await syncFolder(path);\n', '']],
  },
  {
    name: 'a send not synced before its first byte',
    file: 'journal/file-send-journal.ts',
    edits: [['this.#file.datasync()', 'undefined']],
  },
];

async function plantAll(): Promise<boolean> {
  let missed = 0;
  for (const { name, ...change } of PLANTED) {
    const found = /killed after .*/.exec(await runPlanted(change, program('test/proofs/disk/run.ts')))?.[0];
    if (found === undefined) missed += 1;
    print(`${name.padEnd(40)} ${found ?? 'NOT FOUND'}`);
  }
  print(`${PLANTED.length - missed} passed, ${missed} failed`);
  return missed === 0;
}

async function main(): Promise<boolean> {
  if (values.planted) return plantAll();
  const root = mkdtempSync(join(tmpdir(), 'payout-queue-disk-'));
  let failed = 0;
  try {
    for (const scenario of SCENARIOS) if (!(await check(scenario, root))) failed += 1;
  } finally {
    rmSync(root, { recursive: true });
  }
  print(`${SCENARIOS.length - failed} passed, ${failed} failed`);
  return failed === 0;
}

await runCommand(main, USAGE, values.help);
