import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.js';
import { toChainedLines } from '../../../src/journal/line-chain.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { writeKeyring } from '../../control/support/key-files.js';
import { keyEntry, testKey, type KeyEntry } from '../../control/support/keys.js';
import { ForgedAccount } from '../../forging/support/forged-account.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { adoptJournal } from '../../proofs/signing.js';
import { cents } from '../../support/account.js';
import { until } from '../../support/until.js';
import type { Rig } from '../rig.js';
import { alike, told, warned, type Way } from './way.js';

const AILING_DISK = new URL('../ailing-disk.mjs', import.meta.url).href;

export async function prepareDisk(rig: Rig) {
  const control = join(rig.world.dir, 'disk');
  Object.assign(rig.environment, { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control });
  await makeDiskAil(rig, 'well');
}

export const makeDiskAil = async ({ environment }: Rig, ailment: string) =>
  writeFile(environment['AILING_DISK'] ?? '', ailment);

/** From now on it ails, and a payout waits. */
const ail = (ailment: string, payouts = 1) => ({
  prepare: prepareDisk,
  happens: async (rig: Rig) => {
    await makeDiskAil(rig, ailment);
    await rig.world.enqueue(payouts);
  },
});

async function writeJournal({ platformId }: Rig, dir: string, text: string) {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, `${platformId}.journal`), text);
}

/** A worker on another host, whose journal has this. */
async function startOther(rig: Rig, text: string) {
  const journalDir = join(rig.world.dir, 'other-journal');
  await writeJournal(rig, journalDir, text);
  await rig.startWorker({ journalDir });
}

const OF_ANOTHER_LEDGER = toChainedLines(
  [
    { v: 1, journalId: 'abcdef012345', bornAt: 1_800_000_000_000 },
    { ledgerId: 'of-another-redis', epoch: 3, sends: 9, token: 'token-9' },
  ],
  [],
);
const UNREADABLE = [503, 'cannot be read'] as const;
const KNOWS_JOURNAL = [1, 'journal and ledger', 'knows a journal of this host that has sends'] as const;
const STANDS = 'SendingRefused NoSender StandStill';

/** The send journal forbids a send, or cannot be written in time. */
export const JOURNAL_WAYS: readonly Way[] = [
  {
    name: 'The send journal is damaged',
    stop: 'journalRefused',
    happens: async (rig) => rig.replaceWorker(async () => writeJournal(rig, rig.journalDir, 'nonsense\n')),
    told: told('refused', 'SendingRefused NoSender', UNREADABLE, [1, 'journal and ledger', 'cannot be read']),
  },
  {
    name: 'The send journal is deleted while its worker sends',
    happens: async (rig) => {
      await rig.pay(2);
      await rm(join(rig.journalDir, `${rig.platformId}.journal`));
      await rig.world.enqueue(1, 'Q');
    },
    told: told('mismatch', `Objection ${STANDS}`, [503, 'payouts adopt-ledger'], KNOWS_JOURNAL),
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
    told: told('refused', STANDS, [503, 'payouts audit adopt-journal'], KNOWS_JOURNAL),
  },
  {
    name: 'The send journal is of another ledger',
    happens: async (rig) => rig.replaceWorker(async () => writeJournal(rig, rig.journalDir, OF_ANOTHER_LEDGER)),
    told: alike('mismatch', 'Objection SendingRefused NoSender', 503, [1, 'journal and ledger'], 'of-another-redis'),
  },
  {
    name: 'The ledger is of another gateway',
    stop: 'otherGateway',
    happens: async (rig) => {
      await rig.pay(1);
      Object.assign(rig.environment, { PAYOUT_AUDIENCE: 'staging' });
      await rig.replaceWorker(async () => rig.world.enqueue(1, 'Q'));
    },
    told: told(
      'otherGateway',
      STANDS,
      [503, 'This Redis has the payouts of'],
      [1, 'audience', 'and this worker pays at'],
    ),
  },
  {
    name: 'The journal of another host objects to the ledger',
    happens: async (rig) => startOther(rig, OF_ANOTHER_LEDGER),
    told: told(
      'mismatch',
      'Objection SendingRefused',
      [200, 'payouts adopt-ledger'],
      [1, 'pause', 'nothing is sent: send journal'],
    ),
  },
  {
    name: "The journal's disk is full",
    stop: 'journalFull',
    ...ail('full'),
    repeats: true,
    told: alike('disk', 'JournalDisk StandStill', 200, [1, 'journal folder'], 'ENOSPC'),
  },
  {
    name: "The journal's disk is full, and its last line is torn",
    ...ail('torn'),
    repeats: true,
    told: alike('disk', 'JournalDisk StandStill', 200, [1, 'journal folder'], 'ENOSPC'),
  },
  {
    name: "The journal's disk takes too long, so that a payout is put back again and again",
    stop: 'clock',
    ...ail('slow 1200'),
    repeats: true,
    told: told(
      'sendsFail',
      'NotSent StandStill JournalSlow',
      [200, 'ended before anything was written'],
      [1, 'journal folder', 'synced to disk in'],
    ),
  },
  {
    name: "The journal's disk does not answer any more",
    stop: 'journalHangs',
    ...ail('hang'),
    prepare: async (rig) => {
      await prepareDisk(rig);
      execFileSync('mkfifo', [`${rig.environment['AILING_DISK'] ?? ''}.pipe`]);
    },
    told: alike('disk', STANDS, 503, [1, 'journal folder'], 'has not answered'),
  },
  {
    name: 'The worker is killed in the middle of a request, and the journal of the one that stands by is damaged',
    happens: async (rig) => {
      await startOther(rig, 'nonsense\n');
      const { sandbox } = rig.world;
      sandbox.pause();
      await rig.world.enqueue(1);
      await until('the request arrived', () => sandbox.stats().arrivals === 1);
      await rig.workers.shift()?.end();
    },
    told: told('refused', 'SendingRefused NoSender SendingTooLong', UNREADABLE, [1, 'worker', 'cannot be read']),
  },
  {
    name: "The journal's disk is slow",
    ...ail('slow 150', 60),
    told: told(
      'sending',
      'JournalSlow',
      [200, 'Each entry of the send journal takes over'],
      [0, 'journal folder', 'synced to disk in'],
    ),
  },
];

const DAY_MS = 24 * 60 * 60 * 1_000;

export const ARCHIVE_WAYS: readonly Way[] = [
  {
    name: 'The archive of old payouts cannot be written',
    environment: { PAYOUT_RETENTION_DAYS: '1', PAYOUT_ARCHIVE_DIR: '/dev/null' },
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        const clock = { ...systemClock, wallNow: () => Date.now() - 3 * DAY_MS };
        const ledger = new PayoutLedger(connectLedger(rig.client, rig.platformId, clock));
        await ledger.enqueue([aPayout('old')]);
        await ledger.change({ payoutId: 'old', from: 'queued', to: 'cancelled' });
      }),
    told: told('idle', 'ArchiveFails', [200, 'Old payouts stay in Redis'], [0, 'archive folder', 'cannot be written']),
  },
];

export async function prepareKeyring({ world, environment }: Rig, shop: Partial<KeyEntry> = {}) {
  const keys = [keyEntry(testKey(1), shop), keyEntry(testKey(2), { name: 'ann', role: 'operator', person: 'Ann' })];
  Object.assign(environment, { PAYOUT_KEYS_FILE: await writeKeyring(join(world.dir, 'keys.json'), keys) });
}

export async function prepareSigning(rig: Rig, shop: Partial<KeyEntry> = {}) {
  await prepareKeyring(rig, shop);
  await adoptJournal(rig.journalDir, rig.platformId);
}

async function enqueueSigned(rig: Rig, ...payoutIds: string[]) {
  const producer = rig.openSigningProducer();
  await producer.enqueueMany(cents(payoutIds));
  await producer.close();
}

const untilHeld = async ({ world: { producer } }: Rig) =>
  until('the payout is held', async () => (await producer.stats()).held === 1);

async function enqueueAndWait(rig: Rig) {
  await rig.world.enqueue(1);
  await untilHeld(rig);
}

const HELD = '1 payout held, and not sent';

export const SIGNED_WAYS: readonly Way[] = [
  {
    name: 'A payout is held, since nobody signed it',
    prepare: prepareSigning,
    happens: enqueueAndWait,
    told: warned('holds', 'Held', HELD),
  },
  {
    name: 'A payout is held, since someone altered it in Redis',
    prepare: prepareSigning,
    happens: async (rig) => {
      const account = new ForgedAccount(rig.platformId, rig.redis.url, rig.client);
      // Signed for another account.
      for (const payout of cents(['P-1'])) await account.enqueueAs(payout, { platformId: rig.platformId + 1 });
      await account.close();
      await untilHeld(rig);
    },
    told: warned('tampering', 'Tampering Held', HELD),
  },
  {
    name: 'Payouts wait that were signed before the send journal began, and nobody adopted it',
    prepare: prepareSigning,
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await enqueueSigned(rig, 'P-1', 'P-2');
        await rm(rig.journalDir, { recursive: true });
      }),
    told: told(
      'refused',
      'SendingRefused NoSender StandStill',
      [503, 'payouts audit adopt-journal'],
      [1, 'signed journal', 'this host sends nothing: payouts wait that were signed before'],
    ),
  },
  {
    name: 'The only key of a producer has ended',
    prepare: async (rig) => prepareSigning(rig, { notAfter: new Date(Date.now() - 3_600_000).toISOString() }),
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await untilHeld(rig);
    },
    told: told('holds', 'Held KeyExpires', [200, HELD], [1, 'keys', 'no key of a producer that is valid now']),
  },
  {
    name: 'Someone removes a pause from Redis',
    stop: 'keptPause',
    prepare: prepareSigning,
    happens: async (rig) => {
      await enqueueSigned(rig, 'P-1');
      await until('it is paid', async () => (await rig.world.producer.stats()).completed === 1);
      await rig.operator.pause({ by: 'ann', reason: 'to check it' });
      await enqueueSigned(rig, 'P-2');
      await rig.worker.said('the account is paused');
      await rig.client.hdel(`${rig.prefix}:ledger`, 'pausedReason');
    },
    told: told(
      'pauseKept',
      'Tampering StandStill',
      [200, 'A pause is gone from Redis, and no operator signed that'],
      [1, 'signed journal', 'although Redis shows no pause'],
    ),
  },
];

export async function preparePolicy(rig: Rig, rule: string) {
  const file = join(rig.world.dir, 'policy.yaml');
  const text = `version: 1\nplatformId: "${rig.platformId}"\ndefault: send\nrules:\n  - ${rule}\n`;
  await writeFile(file, text, { mode: 0o600 });
  Object.assign(rig.environment, { PAYOUT_POLICY_FILE: file });
}

export const POLICY_WAYS: readonly Way[] = [
  {
    name: 'The gateway tells no rates, and a rule of the policy is in dollars',
    sandbox: { faults: [{ kind: 'json-500', endpoint: 'currencies' }] },
    prepare: async (rig) => preparePolicy(rig, '{ name: never-more, cap: { usd: "1000" }, over: refuse }'),
    happens: enqueueAndWait,
    told: warned('queriesFail', 'RatesStale', 'Rates in dollars: missing'),
  },
  {
    name: 'A rule of the policy holds a payout',
    prepare: async (rig) => preparePolicy(rig, '{ name: denied, when: { paymentId: ["1"] }, over: refuse }'),
    happens: enqueueAndWait,
    told: warned('holds', 'Held', HELD),
  },
];
