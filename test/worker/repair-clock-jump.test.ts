import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '../../src/base/logger.js';
import { repairClockJump } from '../../src/worker/repair-clock-jump.js';
import { LIMITER_MS, STALLED_JOBS } from '../../src/worker/job-worker.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';

const HOUR_MS = 3_600_000;
const POLL_MAX_MS = 10_000;

let rig: QueueRig;
beforeEach(() => {
  rig = openQueueRig();
});
afterEach(async () => rig.close());

async function repair(): Promise<void> {
  await repairClockJump({ queues: rig.queues, logger: silentLogger }, 1.1 * POLL_MAX_MS);
}

/** Like a key whose Redis was put back by an hour right after the key was set. */
async function setForAnHour(key: string): Promise<void> {
  await rig.account.redis.set(key, '1', 'PX', HOUR_MS);
}

it.each(['withdraw', 'transactionstatus'] as const)(
  'shortens what would expire too late in the %s queue because the clock of Redis was put back',
  async (name) => {
    const queue = rig.queues[name];
    const keys = { limiter: queue.toKey('limiter'), check: queue.toKey('stalled-check'), lock: queue.toKey('P:lock') };
    await rig.account.redis.lpush(queue.toKey('active'), 'P');
    for (const key of Object.values(keys)) await setForAnHour(key);
    await repair();
    expect(await rig.account.redis.pttl(keys.limiter)).toBeLessThanOrEqual(LIMITER_MS);
    expect(await rig.account.redis.pttl(keys.check)).toBeLessThanOrEqual(STALLED_JOBS.stalledInterval);
    expect(await rig.account.redis.pttl(keys.lock)).toBeLessThanOrEqual(STALLED_JOBS.lockDuration);
    for (const key of Object.values(keys)) expect(await rig.account.redis.pttl(key)).toBeGreaterThan(0);
  },
);

/** In how many ms a delayed job is due, by the account's clock. */
async function dueInMs(name: 'withdraw' | 'transactionstatus', jobId: string): Promise<number> {
  const score = Number(await rig.account.redis.zscore(rig.queues[name].toKey('delayed'), jobId));
  return Math.floor(score / 0x1000) - rig.account.clock.wallNow();
}

it('makes a poll due that is delayed by more than any poll ever is, and leaves the others', async () => {
  const { redis, clock } = rig.account;
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  await redis.zadd(delayed, (clock.wallNow() + HOUR_MS) * 0x1000 + 5, 'late~0');
  await redis.zadd(delayed, (clock.wallNow() + POLL_MAX_MS) * 0x1000 + 5, 'soon~0');
  await repair();
  expect(await dueInMs('transactionstatus', 'late~0')).toBe(0);
  expect(await dueInMs('transactionstatus', 'soon~0')).toBe(POLL_MAX_MS);
});

it('does not put a poll back among the delayed ones that has become due meanwhile', async () => {
  const { redis, clock } = rig.account;
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  await redis.zadd(delayed, (clock.wallNow() + HOUR_MS) * 0x1000, 'late~0');
  const makePipeline = redis.pipeline.bind(redis);
  // BullMQ takes the job between the check and the change.
  redis.pipeline = () => {
    const pipeline = makePipeline();
    const execute = pipeline.exec.bind(pipeline);
    pipeline.exec = async () => {
      const replies = await execute();
      if (JSON.stringify(replies).includes('late~0')) await redis.zrem(delayed, 'late~0');
      return replies;
    };
    return pipeline;
  };
  await repair();
  redis.pipeline = makePipeline;
  expect(await redis.zcard(delayed)).toBe(0);
});

it('leaves a payout that waits for its `notBefore`, which is a date', async () => {
  const { redis, clock } = rig.account;
  await redis.zadd(rig.queues.withdraw.toKey('delayed'), (clock.wallNow() + HOUR_MS) * 0x1000, 'P~0');
  await repair();
  expect(await dueInMs('withdraw', 'P~0')).toBe(HOUR_MS);
});
