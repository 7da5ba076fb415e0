import { Queue } from 'bullmq';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { endAllWorkers } from './support/worker-process.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from './support/payout-world.js';
import { until } from '../support/until.js';

let world: PayoutWorld;
let redis: RedisClient;
let queue: Queue;

beforeEach(async () => {
  world = await openWorld();
  redis = connectRedis(world.redisUrl, 'commands');
  queue = new Queue('withdraw', { connection: redis, prefix: `{payouts:${world.platformId}}` });
});

afterEach(async () => {
  await endAllWorkers();
  await queue.close();
  await closeRedis(redis);
  await world.close();
});

it('retrying, promoting and adding BullMQ jobs by hand sends no payout again', async () => {
  world.sandbox.addFaults([{ kind: 'reject', times: 1, message: 'wrong address' }]);
  const [rejected = '', accepted = ''] = await world.enqueue(2);
  world.startWorker();
  await until('both are through', async () => {
    const { completed, rejected: count } = await world.producer.stats();
    return completed === 1 && count === 1;
  });
  const before = world.sandbox.stats().arrivals;

  // As an operator with BullMQ's own tools would.
  await (await queue.getJob(toJobId({ payoutId: rejected })))?.retry('failed');
  await (await queue.getJob(toJobId({ payoutId: accepted })))?.retry('completed');
  await queue.retryJobs({ state: 'failed' });
  for (const payoutId of [rejected, accepted]) {
    await queue.add('withdraw', { payoutId }, { jobId: `copy-${payoutId}` });
    await queue.add('withdraw', { payoutId }, { jobId: `late-${payoutId}`, delay: 60_000 });
    await (await queue.getJob(`late-${payoutId}`))?.promote();
  }
  await until('all jobs are done', async () => {
    const { waiting, active, delayed } = await queue.getJobCounts('waiting', 'active', 'delayed');
    return waiting === 0 && active === 0 && delayed === 0;
  });
  expect(world.sandbox.stats().arrivals).toBe(before);
  expect((await world.producer.get(rejected))?.state).toBe('rejected');
  await expectPromisesKept(world);
}, 90_000);

it('jobs removed by hand, or lost before they were added, are added again', async () => {
  const payoutIds = await world.enqueue(3);
  await queue.obliterate({ force: true });
  world.startWorker();
  await until('all are completed', async () => (await world.producer.stats()).completed === payoutIds.length);
  await expectPromisesKept(world);
}, 60_000);

it('a payout is not sent before its time, even when its job is promoted by hand', async () => {
  const notBefore = new Date(Date.now() + 8_000);
  await world.producer.enqueue({ payoutId: 'later', paymentId: 1, amount: '1', addressTo: 'wallet-later', notBefore });
  await (await queue.getJob(toJobId({ payoutId: 'later' })))?.promote();
  world.startWorker();
  await until('it is completed', async () => (await world.producer.get('later'))?.state === 'completed', 30_000);
  const later = await world.producer.get('later');
  expect(Date.parse(later?.history.find(({ to }) => to === 'sending')?.at ?? '')).toBeGreaterThanOrEqual(
    notBefore.getTime(),
  );
}, 60_000);

it('the more urgent of two waiting payouts goes first', async () => {
  await world.producer.enqueue({ payoutId: 'low', paymentId: 1, amount: '1', addressTo: 'wallet-low', priority: 9 });
  await world.producer.enqueue({ payoutId: 'high', paymentId: 1, amount: '1', addressTo: 'wallet-high', priority: 2 });
  world.startWorker();
  await until('both are completed', async () => (await world.producer.stats()).completed === 2);
  expect(world.sandbox.payments().map(({ addressTo }) => addressTo)).toEqual(['wallet-high', 'wallet-low']);
}, 60_000);
