import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../support/until.js';
import type { Rig } from '../support/rig.js';
import { told, type Way } from '../way.js';

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
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender'],
      [503, 'cannot be read'],
      [1, 'journal and ledger', 'cannot be read'],
      'journal',
    ),
  },
  {
    name: 'The send journal is deleted while its worker sends',
    happens: async (rig) => {
      await rig.pay(2);
      await rm(join(rig.journalDir, `${rig.platformId}.journal`));
      await rig.world.enqueue(1, 'Q');
    },
    told: told(
      'mismatch',
      ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'payouts adopt-ledger'],
      [1, 'journal and ledger', 'knows a journal of this host that has sends'],
      'ledger-mismatch',
    ),
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
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'payouts audit adopt-journal'],
      [1, 'journal and ledger', 'knows a journal of this host that has sends'],
      'journal',
    ),
  },
  {
    name: 'The send journal is of another ledger',
    happens: async (rig) => rig.replaceWorker(async () => writeJournal(rig, rig.journalDir, OF_ANOTHER_LEDGER)),
    told: told(
      'mismatch',
      ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender'],
      [503, 'of-another-redis'],
      [1, 'journal and ledger', 'of-another-redis'],
      'ledger-mismatch',
    ),
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
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'This Redis has the payouts of'],
      [1, 'audience', 'and this worker pays at'],
      'journal',
    ),
  },
  {
    name: 'The journal of another host objects to the ledger',
    happens: async (rig) => {
      const journalDir = join(rig.world.dir, 'other-journal');
      await writeJournal(rig, journalDir, OF_ANOTHER_LEDGER);
      await rig.startWorker({ journalDir });
    },
    told: told(
      'mismatch',
      ['PayoutsObjection', 'PayoutsSendingRefused'],
      [200, 'payouts adopt-ledger'],
      [1, 'pause', 'nothing is sent: send journal'],
      'ledger-mismatch',
    ),
  },
  {
    name: "The journal's disk is full",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'full');
      await rig.world.enqueue(1);
    },
    repeats: true,
    told: told(
      'disk',
      ['PayoutsJournalDisk', 'PayoutsStandStill'],
      [200, 'ENOSPC'],
      [1, 'journal folder', 'ENOSPC'],
      'disk',
    ),
  },
  {
    name: "The journal's disk takes too long, so that a payout is put back again and again",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'slow 1200');
      await rig.world.enqueue(1);
    },
    repeats: true,
    told: told(
      'sendsFail',
      ['PayoutsNotSent', 'PayoutsStandStill', 'PayoutsJournalSlow'],
      [200, 'ended before anything was written'],
      [1, 'journal folder', 'synced to disk in'],
      'nothing-is-sent',
    ),
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
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
      [503, 'has not answered'],
      [null, 'journal folder', 'has not answered'],
      'journal',
    ),
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
    told: told(
      'refused',
      ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsSendingTooLong'],
      [503, 'cannot be read'],
      [1, 'worker', 'cannot be read'],
      'journal',
    ),
  },
  {
    name: "The journal's disk is slow",
    prepare: prepareDisk,
    happens: async (rig) => {
      await makeDiskAil(rig, 'slow 150');
      await rig.world.enqueue(60);
    },
    told: told(
      'sending',
      ['PayoutsJournalSlow'],
      [200, 'Each entry of the send journal takes over'],
      [0, 'journal folder', 'synced to disk in'],
      'disk',
    ),
  },
];
