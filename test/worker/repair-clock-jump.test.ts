import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '../../src/logger.js';
import { PayoutQueues } from '../../src/queues/payout-queues.js';
import { repairClockJump } from '../../src/worker/repair-clock-jump.js';
import { LIMITER_MS, STALLED_JOBS } from '../../src/worker/job-worker.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';

const HOUR_MS = 3_600_000;
const POLL_MAX_MS = 10_000;

let account: TestAccount;
let queues: PayoutQueues;
beforeEach(() => {
  account = openTestAccount();
  const { redis, connection, clock } = account;
  queues = new PayoutQueues(redis, { prefix: connection.keys.prefix, wallNow: () => clock.wallNow() });
});
afterEach(async () => {
  await queues.close();
  await account.close();
});

async function repair(): Promise<void> {
  await repairClockJump({ queues, longestPollDelayMs: 1.1 * POLL_MAX_MS, logger: silentLogger });
}

/** Like a key whose Redis was put back by an hour right after the key was set. */
async function setForAnHour(key: string): Promise<void> {
  await account.redis.set(key, '1', 'PX', HOUR_MS);
}

it.each(['withdraw', 'transactionstatus'] as const)(
  'shortens what would expire too late in the %s queue because the clock of Redis was put back',
  async (name) => {
    const queue = queues[name];
    const keys = { limiter: queue.toKey('limiter'), check: queue.toKey('stalled-check'), lock: queue.toKey('P:lock') };
    await account.redis.lpush(queue.toKey('active'), 'P');
    for (const key of Object.values(keys)) await setForAnHour(key);
    await repair();
    expect(await account.redis.pttl(keys.limiter)).toBeLessThanOrEqual(LIMITER_MS);
    expect(await account.redis.pttl(keys.check)).toBeLessThanOrEqual(STALLED_JOBS.stalledInterval);
    expect(await account.redis.pttl(keys.lock)).toBeLessThanOrEqual(STALLED_JOBS.lockDuration);
    for (const key of Object.values(keys)) expect(await account.redis.pttl(key)).toBeGreaterThan(0);
  },
);

/** In how many ms a delayed job is due, by the account's clock. */
async function dueInMs(name: 'withdraw' | 'transactionstatus', jobId: string): Promise<number> {
  const score = Number(await account.redis.zscore(queues[name].toKey('delayed'), jobId));
  return Math.floor(score / 0x1000) - account.clock.wallNow();
}

it('makes a poll due that is delayed by more than any poll ever is, and leaves the others', async () => {
  const { redis, clock } = account;
  const delayed = queues.transactionstatus.toKey('delayed');
  await redis.zadd(delayed, (clock.wallNow() + HOUR_MS) * 0x1000 + 5, 'late~0');
  await redis.zadd(delayed, (clock.wallNow() + POLL_MAX_MS) * 0x1000 + 5, 'soon~0');
  await repair();
  expect(await dueInMs('transactionstatus', 'late~0')).toBe(0);
  expect(await dueInMs('transactionstatus', 'soon~0')).toBe(POLL_MAX_MS);
});

it('does not put a poll back among the delayed ones that has become due meanwhile', async () => {
  const { redis, clock } = account;
  const delayed = queues.transactionstatus.toKey('delayed');
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
  const { redis, clock } = account;
  await redis.zadd(queues.withdraw.toKey('delayed'), (clock.wallNow() + HOUR_MS) * 0x1000, 'P~0');
  await repair();
  expect(await dueInMs('withdraw', 'P~0')).toBe(HOUR_MS);
});
