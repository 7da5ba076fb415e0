import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import type { Way } from '../way.js';

const AILING_DISK = new URL('../support/ailing-disk.mjs', import.meta.url).href;

/** Has the disks of the worker and of doctor ail from when it is told. */
async function prepareDisk(rig: Rig): Promise<void> {
  const control = join(rig.world.dir, 'disk');
  await writeFile(control, 'well');
  Object.assign(rig.environment, { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control });
}

async function makeDiskAil({ environment }: Rig, ailment: string): Promise<void> {
  await writeFile(environment['AILING_DISK'] ?? '', ailment);
}

async function writeJournal({ platformId }: Rig, dir: string, text: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, `${platformId}.journal`), text);
}

const OF_ANOTHER_LEDGER = '{"ledgerId":"of-another-redis","epoch":3,"sends":9}\n';

/** The send journal forbids a send, or cannot be written in time. */
export const JOURNAL_WAYS: readonly Way[] = [
  {
    name: 'The send journal is damaged',
    happens: async (rig) => rig.replaceWorker(async () => writeJournal(rig, rig.journalDir, 'nonsense\n')),
    told: {
      headline: 'refused',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender'],
      readyz: { status: 503, words: 'cannot be read' },
      doctor: { exit: 1, check: 'journal and ledger', words: 'cannot be read' },
      runbook: 'journal',
    },
  },
  {
    name: 'The send journal is deleted while its worker sends',
    happens: async (rig) => {
      await rig.pay(2);
      await rm(join(rig.journalDir, `${rig.platformId}.journal`));
      await rig.world.enqueue(1, 'Q');
    },
    told: {
      headline: 'mismatch',
      alerts: ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      readyz: { status: 503, words: 'payouts adopt-ledger' },
      doctor: { exit: 1, check: 'journal and ledger', words: 'knows a journal of this host that has sends' },
      runbook: 'ledger-mismatch',
    },
  },
  {
    name: 'The send journal is gone when its worker starts',
    happens: async (rig) => {
      await rig.pay(2);
      await rig.replaceWorker(async () => {
        await rm(rig.journalDir, { recursive: true });
        await rig.world.enqueue(2, 'Q');
      });
    },
    told: {
      headline: 'refused',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      readyz: { status: 503, words: 'payouts audit adopt-journal' },
      doctor: { exit: 1, check: 'journal and ledger', words: 'knows a journal of this host that has sends' },
      runbook: 'journal',
    },
  },
  {
    name: 'The send journal is of another ledger',
    happens: async (rig) => rig.replaceWorker(async () => writeJournal(rig, rig.journalDir, OF_ANOTHER_LEDGER)),
    told: {
      headline: 'mismatch',
      alerts: ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender'],
      readyz: { status: 503, words: 'of-another-redis' },
      doctor: { exit: 1, check: 'journal and ledger', words: 'of-another-redis' },
      runbook: 'ledger-mismatch',
    },
  },
  {
    name: 'The ledger is of another gateway',
    happens: async (rig) => {
      await rig.pay(1);
      Object.assign(rig.environment, { PAYOUT_AUDIENCE: 'staging' });
      await rig.replaceWorker(async () => {
        await rig.world.enqueue(1, 'Q');
      });
    },
    told: {
      headline: 'refused',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      readyz: { status: 503, words: 'This Redis has the payouts of' },
      doctor: { exit: 1, check: 'audience', words: 'and this worker pays at' },
      runbook: 'journal',
    },
  },
  {
    name: 'The journal of another host objects to the ledger',
    happens: async (rig) => {
      const journalDir = join(rig.world.dir, 'other-journal');
      await writeJournal(rig, journalDir, OF_ANOTHER_LEDGER);
      await rig.startWorker({ journalDir });
    },
    told: {
      headline: 'mismatch',
      alerts: ['PayoutsObjection', 'PayoutsSendingRefused'],
      readyz: { status: 200, words: 'payouts adopt-ledger' },
      doctor: { exit: 1, check: 'pause', words: 'nothing is sent: send journal' },
      runbook: 'ledger-mismatch',
    },
  },
  {
    name: "The journal's disk is full",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'full');
      await rig.world.enqueue(1);
    },
    repeats: true,
    told: {
      headline: 'disk',
      alerts: ['PayoutsJournalDisk', 'PayoutsStandStill'],
      readyz: { status: 200, words: 'ENOSPC' },
      doctor: { exit: 1, check: 'journal folder', words: 'ENOSPC' },
      runbook: 'disk',
    },
  },
  {
    name: "The journal's disk takes too long, so that a payout is put back again and again",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'slow 1200');
      await rig.world.enqueue(1);
    },
    repeats: true,
    told: {
      headline: 'sendsFail',
      alerts: ['PayoutsNotSent', 'PayoutsStandStill', 'PayoutsJournalSlow'],
      readyz: { status: 200, words: 'ended before anything was written' },
      doctor: { exit: 1, check: 'journal folder', words: 'synced to disk in' },
      runbook: 'nothing-is-sent',
    },
  },
  {
    name: "The journal's disk does not answer any more",
    prepare: async (rig) => {
      await prepareDisk(rig);
      execFileSync('mkfifo', [`${rig.environment['AILING_DISK'] ?? ''}.pipe`]);
    },
    happens: async (rig) => {
      await makeDiskAil(rig, 'hang');
      await rig.world.enqueue(1);
    },
    told: {
      headline: 'refused',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      readyz: { status: 503, words: 'has not answered' },
      doctor: { exit: null, check: 'journal folder', words: 'has not answered' },
      runbook: 'journal',
    },
  },
  {
    name: 'The worker is killed in the middle of a request, and the journal of the one that stands by is damaged',
    happens: async (rig) => {
      const journalDir = join(rig.world.dir, 'other-journal');
      await writeJournal(rig, journalDir, 'nonsense\n');
      await rig.startWorker({ journalDir });
      rig.world.sandbox.pause();
      await rig.world.enqueue(1);
      await until('the request arrived', () => rig.world.sandbox.stats().arrivals === 1);
      const killed = rig.workers.shift();
      await killed?.end();
    },
    told: {
      headline: 'refused',
      alerts: ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsSendingTooLong'],
      readyz: { status: 503, words: 'cannot be read' },
      doctor: { exit: 1, check: 'worker', words: 'cannot be read' },
      runbook: 'journal',
    },
  },
  {
    name: "The journal's disk is slow",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'slow 150');
      await rig.world.enqueue(60);
    },
    told: {
      headline: 'sending',
      alerts: ['PayoutsJournalSlow'],
      readyz: { status: 200, words: 'Each entry of the send journal takes over' },
      doctor: { exit: 0, check: 'journal folder', words: 'synced to disk in' },
      runbook: 'disk',
    },
  },
];
