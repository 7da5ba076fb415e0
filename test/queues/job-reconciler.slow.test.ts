import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { Queue } from 'bullmq';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { STATES_WITH_JOB } from '../../src/ledger/states.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import { PayoutQueues } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { startSandbox } from '../../src/sandbox/index.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { until } from '../support/until.js';
import { makeInProgress } from './support/queue-rig.js';

const platformId = 7;

let server: LocalRedis;
let redis: RedisClient;
let queues: PayoutQueues;
let ledger: PayoutLedger;
let reconciler: JobReconciler;
let producer: PayoutProducer;

beforeEach(async () => {
  server = await startLocalRedis({ args: ['--appendfsync', 'no'] });
  redis = connectRedis(server.url, 'commands');
  ledger = new PayoutLedger(connectLedger(redis, platformId));
  queues = new PayoutQueues(ledger.connection);
  const relay = new OutboxRelay(ledger, queues, { firstPollAfterMs: 1_000 });
  reconciler = new JobReconciler(ledger, { queues, relay });
  producer = new PayoutProducer({ redisUrl: server.url, platformId });
});

afterEach(async () => {
  await producer.close();
  await queues.close();
  await closeRedis(redis);
  await server.stop();
});

const signal = new AbortController().signal;
const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });

async function enqueue(count: number, name: string): Promise<string[]> {
  const payoutIds = Array.from({ length: count }, (_, index) => `${name}-${String(index).padStart(30, '0')}`);
  for (let start = 0; start < count; start += 10_000) {
    await producer.enqueueMany(payoutIds.slice(start, start + 10_000).map(payout));
  }
  return payoutIds;
}

/** The commands that took Redis more than 5 ms while `work` ran, each as its words. */
async function findSlow(work: () => Promise<unknown>): Promise<string[][]> {
  await redis.call('CONFIG', 'SET', 'slowlog-log-slower-than', '5000', 'slowlog-max-len', '10000');
  await redis.call('SLOWLOG', 'RESET');
  await work();
  const entries = (await redis.call('SLOWLOG', 'GET', '10000')) as [number, number, number, string[]][];
  return entries.map(([, , , words]) => words).filter(([command = '']) => !/slowlog|config/i.test(command));
}

it('takes no command of more than 5 ms to look through 100,000 waiting jobs, or to repair some of them', async () => {
  const payoutIds = await enqueue(100_000, 'payout');
  const { withdraw } = queues;
  const rounds: string[][][] = [];
  for (let round = 0; round < 4; round += 1) {
    // From all over the queue, other jobs in each round; half of them lose their hashes, half their places.
    for (let index = 0; index < 20; index += 1) {
      const jobId = `${payoutIds[index * 5_000 + round] ?? ''}~0`;
      if (index % 2 === 0) await redis.del(withdraw.toKey(jobId));
      else await redis.lrem(withdraw.toKey('wait'), 0, jobId);
    }
    const slow = await findSlow(async () => expect(await reconciler.reconcile('queued', signal)).toBe(20));
    rounds.push(slow);
  }
  // On a machine with other work any command may take long for once. One that is slow by itself is slow in each round …
  const [first = [], ...others] = rounds.map((round) => round.map((words) => words.join(' ')));
  expect(first.filter((command) => others.every((round) => round.includes(command)))).toEqual([]);
  // … and so is the script that looks at one job, which is run with nine keys.
  const repairs = rounds.flat().filter(([command = '', , keys]) => /^evalsha$/i.test(command) && keys === '9');
  expect(repairs.length).toBeLessThan(20);
  expect(await redis.llen(withdraw.toKey('wait'))).toBe(payoutIds.length);
}, 300_000);

/** How often BullMQ reports this of each job. */
async function countEvents(queue: Queue, wanted: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const [, fields] of await redis.xrange(queue.toKey('events'), '-', '+')) {
    const event = fields[fields.indexOf('event') + 1];
    const jobId = fields[fields.indexOf('jobId') + 1] ?? '';
    if (event === wanted) counts.set(jobId, (counts.get(jobId) ?? 0) + 1);
  }
  return counts;
}

it('leaves a busy, healthy account alone: hundreds of checks beside a producer, cancels and a worker', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-busy-'));
  const secretKey = 'k-busy-0123456789';
  const sandbox = await startSandbox({ accounts: [{ platformId, secretKey }], settleAfterMs: 1e9, latencyAfterMs: 20 });
  // Keeps every event, and so every job that was ever added or removed.
  for (const queue of [queues.withdraw, queues.transactionstatus]) {
    await redis.hset(queue.toKey('meta'), 'opts.maxLenEvents', 1_000_000);
  }
  // Polls without a pause: jobs go round through every structure of the queue.
  const polled = await enqueue(300, 'polled');
  for (const payoutId of polled) {
    await queues.removeWithdrawJob({ payoutId });
    await makeInProgress({ account: { ledger } }, payoutId);
    await queues.addStatusJobs([payout(payoutId)], 0);
    await ledger.clearOutbox('in_progress', [payoutId]);
  }
  const pace = { leaseMs: 2_000, quarantineMs: 0, pollMinMs: 50, pollMaxMs: 100, pollRate: 500 };
  const worker = await createPayoutWorker({
    ...{ redisUrl: server.url, journalDir: dir, allowVolatileRedis: true },
    accounts: [{ platformId, baseUrl: sandbox.url, secretKey, ...pace }],
  });
  try {
    await until('it sends', () => worker.accounts[0]?.status.role === 'sender');
    let checks = 0;
    const isBusy = (): boolean => checks < 300;
    const cancelled: string[] = [];
    const produce = async (): Promise<void> => {
      for (let round = 0; isBusy(); round += 1) {
        const some = (await enqueue(50, `round-${round}`)).slice(0, 5);
        for (const payoutId of some) await producer.cancel(payoutId);
        cancelled.push(...some);
      }
    };
    let recreated = 0;
    const check = async (state: (typeof STATES_WITH_JOB)[number]): Promise<void> => {
      for (; isBusy(); checks += 1) recreated += await reconciler.reconcile(state, signal);
    };
    await Promise.all([produce(), ...STATES_WITH_JOB.map(check), ...STATES_WITH_JOB.map(check)]);
    expect(recreated).toBe(0);
    for (const queue of [queues.withdraw, queues.transactionstatus]) {
      const added = await countEvents(queue, 'added');
      expect([...added].filter(([, times]) => times > 1)).toEqual([]);
    }
    const done = new Set([...polled, ...cancelled].map((payoutId) => `${payoutId}~0`));
    const removed = await countEvents(queues.withdraw, 'removed');
    expect([...removed.keys()].filter((jobId) => !done.has(jobId))).toEqual([]);
    expect(await countEvents(queues.transactionstatus, 'removed')).toEqual(new Map());
    const waiting = await redis.lrange(queues.withdraw.toKey('wait'), 0, -1);
    expect(new Set(waiting).size).toBe(waiting.length);
  } finally {
    await worker.stop();
    await sandbox.close();
    await rm(dir, { recursive: true, force: true });
  }
}, 180_000);
