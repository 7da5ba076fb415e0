import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { HEADLINES } from '../../src/operator/account-headline.js';
import type { AccountSummary } from '../../src/operator/account-summary.js';
import { until } from '../support/until.js';
import type { RigOptions } from '../told/rig.js';
import { makeDiskAil, prepareDisk, prepareKeyring, preparePolicy } from '../told/ways/journal.js';
import type { DrillRig } from './drill-rig.js';

/** One fault: what the operator sees within six seconds, and how the runbook repairs it. */
export type Drill = RigOptions &
  Readonly<{
    name: string;
    prepare?: (rig: DrillRig) => Promise<void>;
    /** @returns since when it can be known, on `performance.now()`, where not since it has happened */
    happens: (rig: DrillRig) => Promise<unknown>;
    /** On the page, with the runbook of the headline. ACCOUNT stands for the account's number. */
    shows: readonly [tone: 'good' | 'warn' | 'bad', headline: keyof typeof HEADLINES, command: string];
    repair: (rig: DrillRig) => Promise<unknown>;
    /** What the first command of the runbooks' index shows, if it is one of ours. */
    finds?: string;
    /** The words by which the index has that command, if not by the headline's. */
    indexed?: string;
  }>;

/** A heartbeat rises every two seconds. The page takes one for missing after this time: it is the first to know. */
export const HEARTBEAT_MISSED_MS = 4_800;

/** While nothing is sent, the sender counts this often what its payouts need. */
const COUNTED_IDLE_EVERY_MS = 15_000;

const cap = (count: number) => `{ name: day, cap: { count: '${count}', within: 24h }, over: wait }`;
const PAUSED = ['bad', 'paused', 'payouts resume --account ACCOUNT --reason WHY'] as const;
const LIST_UNKNOWN = 'payouts list --account ACCOUNT --state unknown';

export const DRILLS: readonly Drill[] = [
  {
    name: '502',
    environment: { IN_FLIGHT_MAX_MS: '30000' },
    happens: async ({ world: { sandbox } }) => {
      sandbox.setFaults([{ kind: 'html-502' }]);
      await until('a send was answered with 502', () => (sandbox.stats().faultsFired['html-502'] ?? 0) > 0);
    },
    shows: ['bad', 'noResponse', LIST_UNKNOWN],
    repair: async (rig) => {
      rig.world.sandbox.setFaults([]);
      await rig.follow('gateway', 'payouts gateway balance');
      await rig.resolveUnknown();
    },
  },
  {
    name: 'blocked',
    happens: async (rig) => {
      await rig.payBeside('0.01', '0.01');
      await until('the gateway blocked the account', () => rig.world.sandbox.stats().blocked);
    },
    shows: PAUSED,
    repair: async (rig) => {
      rig.world.sandbox.unblock();
      await retryRejected(rig, 'blocked');
      await rig.follow('paused', 'payouts resume --reason WHY');
    },
  },
  {
    name: 'wrong signature',
    happens: async (rig) => {
      const calls = () => rig.world.sandbox.stats().calls.withdraw;
      let before = Infinity;
      const secretKey = 'k-another-9876543210';
      await rig.replaceWorker(async () => Promise.resolve((before = calls())), { secretKey });
      await until('a send with the wrong signature arrived', () => calls() > before);
    },
    shows: PAUSED,
    repair: async (rig) => {
      await rig.follow('paused', 'payouts gateway balance');
      await rig.replaceWorker();
      await retryRejected(rig, 'ignature');
      await rig.follow('gateway-key', 'payouts resume --reason "new secret key, ticket 812"');
    },
  },
  {
    name: 'slow',
    happens: async (rig) => {
      rig.world.sandbox.setFaults([{ kind: 'latency-after', delayMs: 10_000 }]);
      await rig.untilSent(1);
      return performance.now() + 6_000;
    },
    shows: ['warn', 'gatewaySlow', 'payouts gateway balance'],
    repair: async (rig) => {
      rig.world.sandbox.setFaults([]);
      await rig.follow('gateway', 'payouts gateway balance');
    },
  },
  {
    name: 'SIGKILL',
    happens: async ({ worker }) => {
      await worker.end();
      return performance.now() + HEARTBEAT_MISSED_MS;
    },
    shows: ['bad', 'silent', 'payouts worker'],
    repair: async (rig) => rig.replaceWorker(),
  },
  {
    name: 'Redis killed',
    happens: async ({ redis }) => Promise.resolve(process.kill(redis.pid, 'SIGKILL')),
    shows: ['bad', 'redisDown', 'payouts doctor'],
    repair: async (rig) => {
      await rig.redis.startAgain();
      await rig.untilFollowed('redis-down', 'payouts doctor');
    },
  },
  {
    name: 'rolled back',
    happens: async (rig) => {
      const { redis, world } = rig;
      const copy = join(world.dir, 'copy');
      await cp(redis.dir, copy, { recursive: true });
      await rig.untilSent(2);
      process.kill(redis.pid, 'SIGKILL');
      await redis.stop();
      await rm(redis.dir, { recursive: true });
      await cp(copy, redis.dir, { recursive: true });
      await redis.startAgain();
    },
    shows: ['bad', 'mismatch', 'payouts adopt-ledger --account ACCOUNT --journal '],
    repair: async (rig) => {
      const { advice } = JSON.parse(await rig.runText('payouts status --json', {}, [1])) as AccountSummary;
      await rig.runText(`${advice[0]?.command ?? ''} --yes`);
      await rig.follow('ledger-mismatch', 'payouts resume --of adoption --reason WHY');
    },
  },
  {
    name: 'disk full',
    prepare: prepareDisk,
    happens: async (rig) => makeDiskAil(rig, 'full'),
    shows: ['bad', 'disk', 'payouts doctor'],
    repair: async (rig) => makeDiskAil(rig, 'well'),
  },
  {
    name: 'five unknown',
    environment: { MAX_UNKNOWNS_IN_A_ROW: '10', IN_FLIGHT_MAX_MS: '1000' },
    happens: async ({ world: { sandbox, producer } }) => {
      sandbox.addFaults([{ kind: 'drop-after', times: 3 }]);
      sandbox.addFaults([{ kind: 'drop-before', times: 2 }]);
      await until('five are unknown', async () => (await producer.stats()).unknown === 5);
    },
    shows: ['warn', 'unknown', LIST_UNKNOWN],
    repair: resolveFiles,
  },
  {
    name: 'wrong batch',
    happens: async (rig) => rig.enqueue(30, 'wrong', '2030-01-salaries'),
    shows: ['good', 'sending', ''],
    repair: async (rig) => {
      const cancel = 'payouts cancel --batch 2030-01-salaries';
      await rig.follow('wrong-batch', `${cancel} --dry-run --reason "wrong file"`);
      await rig.follow('wrong-batch', `${cancel} --yes --reason "wrong file"`, {}, [0, 4]);
      const listed = await rig.follow('wrong-batch', 'payouts list --batch 2030-01-salaries --all --csv');
      for (const [, payoutId = ''] of listed.matchAll(/^(wrong-\d+),.*cancelled/gm)) rig.expected.delete(payoutId);
    },
  },
  {
    name: 'cap reached',
    prepare: async (rig) => preparePolicy(rig, cap(5)),
    happens: async ({ world: { producer } }) =>
      until('payouts are held', async () => (await producer.stats()).held > 0),
    shows: ['warn', 'holds', 'payouts list --account ACCOUNT --state held'],
    repair: async (rig) => {
      await rig.follow('policy', 'payouts policy usage');
      await preparePolicy(rig, cap(500));
      await rig.follow('policy', 'payouts policy check');
      rig.worker.kill('SIGHUP');
    },
  },
  {
    name: 'balance gone',
    environment: { BALANCE_EVERY_MS: '1000' },
    // Worth nineteen payouts.
    sandbox: { balance: '12300' },
    // Said before the first is rejected.
    happens: async (rig) => {
      await rig.enqueue(14, 'Q');
      return performance.now() + COUNTED_IDLE_EVERY_MS;
    },
    shows: ['warn', 'balanceLow', 'payouts gateway balance --account ACCOUNT'],
    repair: async (rig) => {
      await until('a payout is rejected', async () => (await rig.world.producer.stats()).rejected > 0);
      await rig.untilShown('bad', 'Balance too low');
      await rig.expectSameWords('Balance too low');
      await rig.topUp();
      await rig.follow('balance-low', 'payouts gateway balance');
      await retryRejected(rig, 'insufficient balance');
      await rig.follow('rejected', 'payouts resume --reason "topped up, ticket 814"');
    },
  },
  {
    name: 'IP address not listed',
    happens: async ({ world: { sandbox } }) => {
      sandbox.setFaults([{ kind: 'reject', message: 'IP not whitelisted', times: 1 }]);
      await until('a payout is rejected', () => (sandbox.stats().faultsFired['reject'] ?? 0) > 0);
    },
    shows: ['bad', 'ipNotListed', 'payouts resume --account ACCOUNT --reason WHY'],
    repair: async (rig) => {
      await rig.follow('ip-address', 'payouts gateway balance');
      await retryRejected(rig, 'IP not whitelisted');
      await rig.follow('ip-address', 'payouts resume --reason "address listed, ticket 816"');
    },
  },
  {
    name: 'second host with its own journal',
    prepare: prepareSigned,
    happens: async (rig) => rig.replaceWorker(undefined, { journalDir: join(rig.world.dir, 'host-b') }),
    shows: ['bad', 'refused', 'payouts doctor --account ACCOUNT'],
    repair: async (rig) => {
      Object.assign(rig.environment, { SEND_JOURNAL_DIR: join(rig.world.dir, 'host-b') });
      await adoptJournal(rig);
    },
  },
  {
    name: 'host lost',
    happens: async (rig) => {
      await rig.worker.end();
      await rm(rig.journalDir, { recursive: true });
      return performance.now() + HEARTBEAT_MISSED_MS;
    },
    shows: ['bad', 'silent', 'payouts worker'],
    repair: async (rig) => {
      await rig.replaceWorker(undefined, { journalDir: join(rig.world.dir, 'host-b') });
      await rig.follow('host-lost', 'payouts stats');
      await rig.follow('host-lost', 'payouts list --state unknown');
    },
  },
];

async function retryRejected(rig: DrillRig, message: string) {
  for (const how of ['--dry-run', '--yes']) {
    const command = `payouts retry --message "Not enough funds" ${how} --reason "topped up, ticket 814"`;
    await rig.follow('rejected', command, { 'Not enough funds': message });
  }
}

/** As unknown.md has it for many: two files, by the gateway's records. */
async function resolveFiles(rig: DrillRig) {
  await rig.follow('unknown', 'payouts list --state unknown --all --csv');
  const { payouts } = await rig.world.producer.list({ state: 'unknown' });
  const hashOf = new Map(rig.payments.map(({ addressTo, txhash }) => [addressTo, txhash]));
  const write = async (name: string, isPaid: boolean) => {
    const chosen = payouts.filter(({ addressTo }) => hashOf.has(addressTo) === isPaid);
    const lines = chosen.map(
      ({ payoutId, addressTo, attempt }) => `${payoutId},${hashOf.get(addressTo) ?? ''},${attempt}\n`,
    );
    const path = join(rig.world.dir, name);
    await writeFile(path, `payout_id,gateway_id,attempt\n${lines.join('')}`);
    return { [name]: path };
  };
  const paid = await write('paid.csv', true);
  for (const how of ['--dry-run', '--yes']) {
    await rig.follow('unknown', `payouts resolve --file paid.csv --sent ${how} --reason "ticket 812"`, paid);
  }
  const why = 'the gateway never received them, ticket 813';
  const notSent = `payouts resolve --file unpaid.csv --not-sent --expect-count 3 --reason "${why}"`;
  await rig.follow('unknown', notSent, { ...(await write('unpaid.csv', false)), 'count 3': 'count 2' });
}

const adoptJournal = async (rig: DrillRig) =>
  rig.follow('journal', 'payouts audit adopt-journal --reason WHY', { drill: 'drill --yes' });

async function prepareSigned(rig: DrillRig) {
  await prepareKeyring(rig);
  await adoptJournal(rig);
  const producer = rig.openSigningProducer();
  await rig.world.producer.close();
  rig.others.push(producer);
  Object.assign(rig.world, { producer });
}
