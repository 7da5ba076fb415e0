import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { writeKeyring } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { until } from '../support/until.js';
import type { RigOptions } from '../told/support/rig.js';
import { type ExpectedAlerts, type DrillRig } from './drill-rig.js';

/** One fault: what the operator sees within six seconds, and how the runbook repairs it. */
export interface Drill extends RigOptions, ExpectedAlerts {
  readonly name: string;
  readonly prepare?: (drill: DrillRig) => Promise<void>;
  /** @returns since when it can be known, on `performance.now()`; without it, since the call */
  readonly happens: (drill: DrillRig) => Promise<number | undefined>;
  readonly tone: 'good' | 'warn' | 'bad';
  readonly headline: string;
  /** On the page. ACCOUNT stands for the account's number. */
  readonly command: string;
  /** Of docs/runbooks, linked on the page; undefined where no headline leads there. */
  readonly runbook: string | undefined;
  readonly repair: (drill: DrillRig) => Promise<unknown>;
}

const AILING_DISK = new URL('../told/support/ailing-disk.mjs', import.meta.url).href;
const ROGUE = 'wallet-roguexxxxxxxxxxxxxxxxxxxxxx';

async function setDisk({ rig }: DrillRig, ailment: string): Promise<void> {
  const control = join(rig.world.dir, 'disk');
  await writeFile(control, ailment);
  Object.assign(rig.environment, { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control });
}

async function writePolicy({ rig }: DrillRig, count: number): Promise<void> {
  const file = join(rig.world.dir, 'policy.yaml');
  const rules = `rules:\n  - { name: day, cap: { count: '${count}', within: 24h }, over: wait }\n`;
  await writeFile(file, `version: 1\nplatformId: "${rig.platformId}"\ndefault: send\n${rules}`, { mode: 0o600 });
  Object.assign(rig.environment, { PAYOUT_POLICY_FILE: file });
}

/** The program that pays with the account's key beside the worker. */
async function sendBeside({ rig, foreign }: DrillRig): Promise<void> {
  foreign.add(ROGUE);
  const gateway = rig.openGateway();
  for (let sent = 0; sent < 2; sent += 1) {
    await gateway.withdraw({ paymentId: 1, amount: '0.01', addressTo: ROGUE }).catch(() => undefined);
  }
  gateway.close();
}

export const DRILLS: readonly Drill[] = [
  {
    name: 'gateway refused',
    happens: async ({ gateway }) => gateway.close().then(() => undefined),
    ...{ tone: 'bad', headline: 'Gateway down', command: 'payouts gateway balance', runbook: 'gateway' },
    alerts: ['PayoutsGatewayDown'],
    // The first only if a payment was on its way; the other not if the last look saw a payout at its attempt.
    also: ['PayoutsPollErrors', 'PayoutsStandStill'],
    repeats: true,
    repair: async (drill) => {
      await drill.gateway.reopen();
      await drill.follow('gateway', 'payouts gateway balance');
    },
  },
  {
    name: '502',
    environment: { IN_FLIGHT_MAX_MS: '30000' },
    happens: async ({ rig: { world } }) => {
      world.sandbox.setFaults([{ kind: 'html-502' }]);
      await until('a send was answered with 502', () => (world.sandbox.stats().faultsFired['html-502'] ?? 0) > 0);
      return performance.now();
    },
    ...{ tone: 'bad', headline: 'No response from the gateway', runbook: 'gateway' },
    command: 'payouts list --account ACCOUNT --state unknown',
    alerts: ['PayoutsUnknown'],
    // Several in a row pause the account, and the wait after each is long here.
    also: ['PayoutsPaused', 'PayoutsStandStill'],
    repair: async (drill) => {
      drill.rig.world.sandbox.setFaults([]);
      await drill.follow('gateway', 'payouts gateway balance');
      await drill.resolveUnknown();
    },
  },
  {
    name: 'blocked',
    happens: async (drill) => {
      await sendBeside(drill);
      await until('the gateway blocked the account', () => drill.rig.world.sandbox.stats().blocked);
      return performance.now();
    },
    ...{ tone: 'bad', headline: 'Paused', command: 'payouts resume --account ACCOUNT --reason WHY', runbook: 'paused' },
    alerts: ['PayoutsPaused', 'PayoutsRejected'],
    // Only if a payment was on its way.
    also: ['PayoutsPollErrors'],
    repair: async (drill) => {
      drill.rig.world.sandbox.unblock();
      await retryRejected(drill, 'blocked');
      await drill.follow('paused', 'payouts resume --reason WHY');
    },
  },
  {
    name: 'wrong signature',
    happens: async (drill) => {
      const { rig } = drill;
      const calls = (): number => rig.world.sandbox.stats().calls.withdraw;
      await rig.workers.shift()?.end();
      const before = calls();
      await drill.rig.startWorker({ secretKey: 'k-another-9876543210' });
      await until('a send with the wrong signature arrived', () => calls() > before);
      return performance.now();
    },
    ...{ tone: 'bad', headline: 'Paused', command: 'payouts resume --account ACCOUNT --reason WHY', runbook: 'paused' },
    alerts: ['PayoutsPaused', 'PayoutsRejected'],
    // Only if a payment was on its way.
    also: ['PayoutsPollErrors'],
    repair: async (drill) => {
      await drill.follow('paused', 'payouts gateway balance');
      await drill.rig.workers.shift()?.end();
      await drill.rig.startWorker();
      await retryRejected(drill, 'ignature');
      await drill.follow('gateway-key', 'payouts resume --reason "new secret key, ticket 812"');
    },
  },
  {
    name: 'slow',
    happens: async (drill) => {
      const { sandbox } = drill.rig.world;
      sandbox.setFaults([{ kind: 'latency-after', delayMs: 10_000 }]);
      await drill.untilSent(1);
      return performance.now() + 6_000;
    },
    ...{ tone: 'warn', headline: 'Gateway slow', command: 'payouts gateway balance', runbook: 'gateway' },
    alerts: ['PayoutsGatewaySlow'],
    // Extrapolated, the payout that is being sent stays so.
    also: ['PayoutsSendingTooLong'],
    repeats: true,
    repair: async (drill) => {
      drill.rig.world.sandbox.setFaults([]);
      await drill.follow('gateway', 'payouts gateway balance');
    },
  },
  {
    name: 'SIGKILL',
    happens: async ({ rig }) => rig.worker.end().then(() => undefined),
    ...{ tone: 'bad', headline: 'Sender without heartbeat', command: 'payouts worker', runbook: 'worker-missing' },
    alerts: ['PayoutsWorkerMissing', 'PayoutsStandStill'],
    repair: async (drill) => {
      drill.rig.workers.shift();
      await drill.rig.startWorker();
    },
  },
  {
    name: 'Redis killed',
    happens: ({ rig }) => {
      process.kill(rig.redis.pid, 'SIGKILL');
      return Promise.resolve(undefined);
    },
    ...{ tone: 'bad', headline: 'Redis does not respond', command: 'payouts doctor', runbook: 'redis-down' },
    alerts: ['PayoutsRedisDown'],
    // Once its lease ended: no worker renews it without Redis.
    also: ['PayoutsNoSender'],
    repair: async (drill) => {
      await drill.rig.redis.startAgain();
      await until('doctor is content', async () =>
        drill.follow('redis-down', 'payouts doctor').then(
          () => true,
          () => false,
        ),
      );
    },
  },
  {
    name: 'rolled back',
    happens: async (drill) => {
      const { redis, client, world } = drill.rig;
      const [, dir = ''] = await client.config('GET', 'dir');
      const copy = await mkdtemp(join(world.dir, 'copy-'));
      await cp(dir, copy, { recursive: true });
      await drill.untilSent(2);
      process.kill(redis.pid, 'SIGKILL');
      await redis.stop();
      await rm(dir, { recursive: true });
      await cp(copy, dir, { recursive: true });
      await redis.startAgain();
      return performance.now();
    },
    ...{ tone: 'bad', headline: 'Stopped: ledger mismatch', runbook: 'ledger-mismatch' },
    command: 'payouts adopt-ledger --account ACCOUNT --journal ',
    alerts: ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender'],
    // What waits depends on the copy, which may have caught a payout in the middle of its send.
    also: ['PayoutsStandStill', 'PayoutsSendingTooLong'],
    repair: async (drill) => {
      const { advice } = await drill.status();
      await drill.runText(`${advice[0]?.command ?? ''} --yes`);
    },
  },
  {
    name: 'disk full',
    prepare: async (drill) => setDisk(drill, 'well'),
    happens: async (drill) => setDisk(drill, 'full').then(() => undefined),
    ...{ tone: 'bad', headline: 'Journal disk', command: 'payouts doctor', runbook: 'disk' },
    alerts: ['PayoutsJournalDisk'],
    // Not if the last look before the hour saw a payout on its way, as none is due then.
    also: ['PayoutsStandStill'],
    repeats: true,
    repair: async (drill) => setDisk(drill, 'well'),
  },
  {
    name: 'five unknown',
    environment: { MAX_UNKNOWNS_IN_A_ROW: '10', IN_FLIGHT_MAX_MS: '1000' },
    happens: async ({ rig: { world } }) => {
      world.sandbox.addFaults([{ kind: 'drop-after', times: 3 }]);
      world.sandbox.addFaults([{ kind: 'drop-before', times: 2 }]);
      await until('five are unknown', async () => (await world.producer.stats()).unknown === 5);
      return performance.now();
    },
    ...{ tone: 'warn', headline: 'Unknown payouts', runbook: 'unknown' },
    command: 'payouts list --account ACCOUNT --state unknown',
    alerts: ['PayoutsUnknown'],
    repair: resolveFiles,
  },
  {
    name: 'wrong batch',
    happens: async (drill) => {
      await drill.enqueue(30, 'wrong', '2030-01-salaries');
      return performance.now();
    },
    ...{ tone: 'good', headline: 'Sending', command: '', runbook: undefined },
    alerts: [],
    repair: async (drill) => {
      await drill.follow('wrong-batch', 'payouts cancel --batch 2030-01-salaries --dry-run --reason "wrong file"');
      await drill.follow(
        'wrong-batch',
        'payouts cancel --batch 2030-01-salaries --yes --reason "wrong file"',
        {},
        [0, 4],
      );
      const listed = await drill.follow('wrong-batch', 'payouts list --batch 2030-01-salaries --all --csv');
      for (const [, payoutId = ''] of listed.stdout.matchAll(/^(wrong-\d+),.*cancelled/gm)) drill.forget(payoutId);
    },
  },
  {
    name: 'cap reached',
    prepare: async (drill) => writePolicy(drill, 5),
    happens: async (drill) => {
      await until('payouts are held', async () => (await drill.rig.world.producer.stats()).held > 0);
      return performance.now();
    },
    ...{ tone: 'warn', headline: 'Holds payouts', runbook: 'held' },
    command: 'payouts list --account ACCOUNT --state held',
    alerts: ['PayoutsPolicyNearlyUsed'],
    repair: async (drill) => {
      await drill.follow('policy', 'payouts policy usage');
      await writePolicy(drill, 500);
      await drill.follow('policy', 'payouts policy check');
      drill.rig.worker.kill('SIGHUP');
    },
  },
  {
    name: 'balance gone',
    environment: { BALANCE_EVERY_MS: '1000' },
    // Worth nine payouts.
    sandbox: { balance: '5800' },
    happens: async (drill) => {
      const { producer } = drill.rig.world;
      await drill.enqueue(4, 'Q');
      await until('a payout is rejected', async () => (await producer.stats()).rejected > 0);
      return performance.now();
    },
    ...{ tone: 'bad', headline: 'Paused', command: 'payouts resume --account ACCOUNT --reason WHY', runbook: 'paused' },
    alerts: ['PayoutsPaused', 'PayoutsRejected', 'PayoutsBalanceLow'],
    repair: async (drill) => {
      await drill.topUp();
      await drill.follow('balance-low', 'payouts gateway balance');
      await retryRejected(drill, 'insufficient balance');
      await drill.follow('rejected', 'payouts resume --reason "topped up, ticket 814"');
    },
  },
  {
    name: 'second host with its own journal',
    prepare: prepareSigned,
    happens: async (drill) => {
      await drill.rig.worker.end();
      drill.rig.workers.shift();
      const since = performance.now();
      await drill.rig.startWorker({ journalDir: join(drill.rig.world.dir, 'host-b') });
      return since;
    },
    ...{ tone: 'bad', headline: 'The worker refuses to send', runbook: 'journal' },
    command: 'payouts doctor --account ACCOUNT',
    alerts: ['PayoutsSendingRefused', 'PayoutsNoSender', 'PayoutsStandStill'],
    repair: async (drill) => {
      Object.assign(drill.rig.environment, { SEND_JOURNAL_DIR: join(drill.rig.world.dir, 'host-b') });
      await drill.follow('journal', 'payouts audit adopt-journal --reason WHY', { drill: 'drill --yes' });
    },
  },
  {
    name: 'host lost',
    happens: async ({ rig }) => {
      await rig.worker.end();
      await rm(rig.journalDir, { recursive: true });
      return undefined;
    },
    ...{ tone: 'bad', headline: 'Sender without heartbeat', command: 'payouts worker', runbook: 'worker-missing' },
    alerts: ['PayoutsWorkerMissing', 'PayoutsStandStill'],
    repair: async (drill) => {
      drill.rig.workers.shift();
      await drill.rig.startWorker({ journalDir: join(drill.rig.world.dir, 'host-b') });
      await drill.follow('host-lost', 'payouts stats');
      await drill.follow('host-lost', 'payouts list --state unknown');
    },
  },
];

async function retryRejected(drill: DrillRig, message: string): Promise<void> {
  const values = { 'Not enough funds': message };
  await drill.follow(
    'rejected',
    'payouts retry --message "Not enough funds" --dry-run --reason "topped up, ticket 814"',
    values,
  );
  await drill.follow(
    'rejected',
    'payouts retry --message "Not enough funds" --yes --reason "topped up, ticket 814"',
    values,
  );
}

/** As unknown.md has it for many: two files, by the gateway's records. */
async function resolveFiles(drill: DrillRig): Promise<void> {
  await drill.follow('unknown', 'payouts list --state unknown --all --csv');
  const { payouts } = await drill.rig.world.producer.list({ state: 'unknown' });
  const hashOf = new Map(drill.payments.map(({ addressTo, txhash }) => [addressTo, txhash]));
  const rows = payouts.map(({ payoutId, addressTo }) => ({ payoutId, txhash: hashOf.get(addressTo) }));
  const files = {
    'paid.csv': join(drill.rig.world.dir, 'paid.csv'),
    'unpaid.csv': join(drill.rig.world.dir, 'unpaid.csv'),
  };
  const lines = (isPaid: boolean): string =>
    rows
      .filter(({ txhash }) => (txhash !== undefined) === isPaid)
      .map(({ payoutId, txhash = '' }) => `${payoutId},${txhash}\n`)
      .join('');
  await writeFile(files['paid.csv'], `payout_id,txhash\n${lines(true)}`);
  await writeFile(files['unpaid.csv'], `payout_id,txhash\n${lines(false)}`);
  await drill.follow('unknown', 'payouts resolve --file paid.csv --sent --dry-run --reason "ticket 812"', {
    'paid.csv': files['paid.csv'],
  });
  await drill.follow('unknown', 'payouts resolve --file paid.csv --sent --yes --reason "ticket 812"', {
    'paid.csv': files['paid.csv'],
  });
  const unpaid = { 'unpaid.csv': files['unpaid.csv'], '--expect-count 3': '--expect-count 2' };
  await drill.follow(
    'unknown',
    'payouts resolve --file unpaid.csv --not-sent --expect-count 3 --reason "the gateway never received them, ticket 813"',
    unpaid,
  );
}

/** A keyring, and a shop that signs what waits. */
async function prepareSigned(drill: DrillRig): Promise<void> {
  const { rig } = drill;
  const file = await writeKeyring(join(rig.world.dir, 'keys.json'), [
    keyEntry(testKey(1)),
    keyEntry(testKey(2), { name: 'ann', role: 'operator', person: 'Ann' }),
  ]);
  Object.assign(rig.environment, { PAYOUT_KEYS_FILE: file });
  await drill.follow('journal', 'payouts audit adopt-journal --reason WHY', { drill: 'drill --yes' });
  const { redis, platformId } = rig;
  const signingKey = { name: 'shop', privateKey: testKey(1) };
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId, signingKey, audience: TEST_AUDIENCE });
  await rig.world.producer.close();
  rig.others.push(producer);
  Object.assign(rig.world, { producer });
}
