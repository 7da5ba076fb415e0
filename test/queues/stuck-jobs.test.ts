import { beforeEach, expect, it } from '@jest/globals';
import type { Queue } from 'bullmq';
import { silentLogger } from '../../src/base/logger.js';
import { countDuePayouts } from '../../src/queues/job-balance.js';
import { StuckJobs } from '../../src/queues/stuck-jobs.js';
import { aPayout, clock, connection, keys, ledger, redis } from '../ledger/support/use-account.js';
import { queues, rig, useRig } from './support/queue-rig.js';

/** A page for queues, or a command to Redis, leaves jobs that nothing would run. */

useRig();

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let withdraw: Queue;
let stuck: StuckJobs;
beforeEach(() => {
  ({ withdraw } = queues);
  stuck = new StuckJobs(connection, silentLogger);
});

const restore = async () => stuck.restoreTimes(withdraw, new AbortController().signal);
const inAnHour = () => new Date(clock.wallNow() + HOUR_MS).toISOString();
const delayOf = async (jobId: string) =>
  Math.floor(Number(await redis.zscore(withdraw.toKey('delayed'), jobId)) / 0x1000) - clock.wallNow();
const delayByHand = async (jobId: string, delayMs: number) => {
  await redis.lrem(withdraw.toKey('wait'), 0, jobId);
  await redis.zadd(withdraw.toKey('delayed'), (clock.wallNow() + delayMs) * 0x1000, jobId);
};

it('a job that was delayed by hand is due for the ledger, and gets the time of its payout back', async () => {
  await rig.enqueue(['plain', 'other', aPayout('dated', { notBefore: inAnHour() })]);
  await delayByHand('plain~0', DAY_MS);
  expect(await countDuePayouts(connection)).toBe(2);
  expect(await restore()).toBe(1);
  expect(await delayOf('plain~0')).toBeLessThanOrEqual(0);
  expect(await delayOf('dated~0')).toBe(HOUR_MS);
  expect(await restore()).toBe(0);
});

it('a job whose date was changed by hand runs once that of its payout has passed', async () => {
  await rig.enqueue([aPayout('dated', { notBefore: inAnHour() })]);
  await delayByHand('dated~0', 30 * DAY_MS);
  expect(await countDuePayouts(connection)).toBe(0);
  clock.advance(HOUR_MS + 1);
  expect(await countDuePayouts(connection)).toBe(1);
  expect(await restore()).toBe(1);
  expect(await delayOf('dated~0')).toBeLessThanOrEqual(0);
});

it('jobs that were delayed by hand among thousands with a date are all found', async () => {
  const notBefore = inAnHour();
  const dated = Array.from({ length: 700 }, (_, index) => aPayout(`d${index}`, { notBefore }));
  const plain = Array.from({ length: 300 }, (_, index) => aPayout(`p${index}`));
  await rig.enqueue([...dated, ...plain]);
  for (const { payoutId } of plain) await delayByHand(`${payoutId}~0`, 30 * 60_000 + plain.length);
  expect(await restore()).toBe(300);
  expect(await countDuePayouts(connection)).toBe(300);
  expect(await restore()).toBe(0);
});

it('a job of a payout that is queued no more may wait, and is looked at once', async () => {
  await rig.enqueue([aPayout('dated', { notBefore: inAnHour() }), 'plain']);
  await ledger.change({ payoutId: 'dated', from: 'queued', to: 'cancelled', by: 'ann', reason: 'no' });
  let reads = 0;
  const watched = new Proxy(redis, {
    get(target, name) {
      if (name === 'zrange') reads += 1;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  stuck = new StuckJobs({ ...connection, redis: watched }, silentLogger);
  expect([await restore(), reads]).toEqual([0, 1]);
  expect([await restore(), reads]).toEqual([0, 1]);
  await delayByHand('plain~0', DAY_MS);
  expect(await restore()).toBe(1);
});

it.each([
  ['withdraw', 'data', 'no JSON'],
  ['withdraw', 'data', 'null'],
  ['withdraw', 'opts', '{'],
  ['withdraw', 'progress', 'half'],
  ['transactionstatus', 'data', ''],
] as const)('a job at its turn in %s whose %s is %p can be read again', async (name, field, text) => {
  const queue = queues[name];
  await rig.enqueue(['a:b']);
  if (name === 'transactionstatus') await rig.accept('a:b');
  const jobId = 'a%3Ab~0';
  await redis.rename(queue.toKey(name === 'withdraw' ? 'wait' : 'delayed'), queue.toKey('was'));
  await redis.lpush(queue.toKey('active'), jobId, 'gone~0');
  expect(await stuck.repairUnreadable(queue)).toBe(0);
  await redis.hset(queue.toKey(jobId), field, text);
  expect(await stuck.repairUnreadable(queue)).toBe(1);
  expect((await queue.getJob(jobId))?.data).toMatchObject({ payoutId: 'a:b' });
  expect(await redis.exists(queue.toKey('gone~0'))).toBe(0);
  expect(await stuck.repairUnreadable(queue)).toBe(0);
  expect(await redis.exists(keys.payout('a:b'))).toBe(1);
});
