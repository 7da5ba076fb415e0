import { Queue } from 'bullmq';
import { expect, it } from '@jest/globals';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, worldOfTest } from './support/payout-world.js';

it('jobs that are retried, promoted and added by hand send no payout again, nor before its time', async () => {
  const world = await worldOfTest();
  const { platformId, producer, redisUrl, sandbox } = world;
  const redis = connectRedis(redisUrl, 'commands');
  afterTest(async () => closeRedis(redis));
  const queue = closeAfterTest(new Queue('withdraw', { connection: redis, prefix: `{payouts:${platformId}}` }));
  const jobOf = async (payoutId: string) => queue.getJob(toJobId({ payoutId }));
  const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
  sandbox.addFaults([{ kind: 'reject', addresses: ['wallet-rejected'], message: 'wrong address' }]);
  const notBefore = new Date(Date.now() + 8_000);
  await producer.enqueue({ ...payout('later'), notBefore });
  await (await jobOf('later'))?.promote();
  await producer.enqueue({ ...payout('low'), priority: 9 });
  await producer.enqueue({ ...payout('high'), priority: 2 });
  await producer.enqueue({ ...payout('rejected'), priority: 10 });
  world.startWorker();
  await until('all are through', async () => {
    const { completed, rejected } = await producer.stats();
    return completed === 3 && rejected === 1;
  });
  const sentTo = sandbox.payments().map(({ addressTo }) => addressTo);
  expect(sentTo).toEqual(['wallet-high', 'wallet-low', 'wallet-later']);
  const sending = (await producer.get('later'))?.history.find(({ to }) => to === 'sending');
  expect(Date.parse(sending?.at ?? '')).toBeGreaterThanOrEqual(notBefore.getTime());

  const before = sandbox.stats().arrivals;
  await (await jobOf('rejected'))?.retry('failed');
  await (await jobOf('low'))?.retry('completed');
  await queue.retryJobs({ state: 'failed' });
  for (const payoutId of ['rejected', 'low']) {
    await queue.add('withdraw', { payoutId }, { jobId: `copy-${payoutId}` });
    await queue.add('withdraw', { payoutId }, { jobId: `late-${payoutId}`, delay: 60_000 });
    await (await queue.getJob(`late-${payoutId}`))?.promote();
  }
  await until('all jobs are done', async () => {
    const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
    return Object.values(counts).every((count) => count === 0);
  });
  expect(sandbox.stats().arrivals).toBe(before);
  expect((await producer.get('rejected'))?.state).toBe('rejected');
  await expectPromisesKept(world);
});
