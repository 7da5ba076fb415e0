import { Queue } from 'bullmq';
import { beforeEach, expect, it } from '@jest/globals';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { expectPromisesKept, worldOfTest, type PayoutWorld } from './support/payout-world.js';

let world: PayoutWorld;
let queue: Queue;
beforeEach(async () => {
  world = await worldOfTest();
  const redis = connectRedis(world.redisUrl, 'commands');
  closeAfterTest({ close: async () => closeRedis(redis) });
  queue = closeAfterTest(new Queue('withdraw', { connection: redis, prefix: `{payouts:${world.platformId}}` }));
});

const counted = async (completed: number, rejected = 0): Promise<void> =>
  until('all are through', async () => {
    const stats = await world.producer.stats();
    return stats.completed === completed && stats.rejected === rejected;
  });
const jobOf = async (payoutId: string) => queue.getJob(toJobId({ payoutId }));

it('retrying, promoting and adding BullMQ jobs by hand sends no payout again', async () => {
  world.sandbox.addFaults([{ kind: 'reject', times: 1, message: 'wrong address' }]);
  const [rejected = '', accepted = ''] = await world.enqueue(2);
  world.startWorker();
  await counted(1, 1);
  const before = world.sandbox.stats().arrivals;
  await (await jobOf(rejected))?.retry('failed');
  await (await jobOf(accepted))?.retry('completed');
  await queue.retryJobs({ state: 'failed' });
  for (const payoutId of [rejected, accepted]) {
    await queue.add('withdraw', { payoutId }, { jobId: `copy-${payoutId}` });
    await queue.add('withdraw', { payoutId }, { jobId: `late-${payoutId}`, delay: 60_000 });
    await (await queue.getJob(`late-${payoutId}`))?.promote();
  }
  await until('all jobs are done', async () => {
    const counts = await queue.getJobCounts('waiting', 'active', 'delayed');
    return Object.values(counts).every((count) => count === 0);
  });
  expect(world.sandbox.stats().arrivals).toBe(before);
  expect((await world.producer.get(rejected))?.state).toBe('rejected');
  await expectPromisesKept(world);
});

it('a payout is sent not before its time, even if promoted by hand, and after more urgent ones', async () => {
  const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
  const notBefore = new Date(Date.now() + 8_000);
  await world.producer.enqueue({ ...payout('later'), notBefore });
  await (await jobOf('later'))?.promote();
  await world.producer.enqueue({ ...payout('low'), priority: 9 });
  await world.producer.enqueue({ ...payout('high'), priority: 2 });
  world.startWorker();
  await counted(3);
  const sentTo = world.sandbox.payments().map(({ addressTo }) => addressTo);
  expect(sentTo).toEqual(['wallet-high', 'wallet-low', 'wallet-later']);
  const sending = (await world.producer.get('later'))?.history.find(({ to }) => to === 'sending');
  expect(Date.parse(sending?.at ?? '')).toBeGreaterThanOrEqual(notBefore.getTime());
});
