import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { JobReconciler } from '../../src/queues/job-reconciler.js';
import { PayoutQueues } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';

const platformId = 7;

let server: LocalRedis;
let redis: RedisClient;
let queues: PayoutQueues;
let reconciler: JobReconciler;
let producer: PayoutProducer;

beforeEach(async () => {
  server = await startLocalRedis({ args: ['--appendfsync', 'no'] });
  redis = connectRedis(server.url, 'commands');
  const ledger = new PayoutLedger(connectLedger(redis, platformId));
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
