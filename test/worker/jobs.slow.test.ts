import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { Queue, type Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../src/base/clock.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';
import { startOwnRedis } from './support/own-redis.js';
import { expectPace, expectPromisesKept, openWorkerIn, worldOfTest } from './support/payout-world.js';

const SPEED = 10;
/** Ten times as fast for what watches the worker; BullMQ has the machine's. */
const fastClock: Clock = {
  ...systemClock,
  now: () => systemClock.now() * SPEED,
  sleep: async (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

/** A worker of the withdraw queue. Its first BullMQ worker hangs in the method until `goOn`; those after it do not. */
function startHanging(method: keyof typeof internals, jobs: JobRig) {
  const original = internals[method];
  const callers = new Set<Worker>();
  let goOn = (): void => undefined;
  const told = new Promise<void>((resolve) => (goOn = resolve));
  jest.spyOn(internals, method).mockImplementation(async function (this: Worker, ...args: unknown[]) {
    callers.add(this);
    const [first] = callers;
    if (first === this) await told;
    return original.apply(this, args);
  });
  const worker = jobs.start({ concurrency: 1, ratePerSecond: 100 }, fastClock);
  return { worker, goOn, untilHung: async () => until('it hangs', () => callers.size > 0) };
}

it('a replaced worker that comes back with a job leaves it to the one in its place', async () => {
  const jobs = new JobRig();
  await jobs.rig.enqueue(Array.from({ length: 20 }, (_, index) => `p${index}`));
  const { goOn, untilHung } = startHanging('moveToActive', jobs);
  await untilHung();
  await until('the other one runs', () => jobs.ran.length >= 2);
  goOn();
  await until('all ran', () => jobs.ran.length === 20);
  expect(new Set(jobs.ran).size).toBe(20);
  expect(jobs).toMatchObject({ replaced: ['withdraw'], mostRunning: 1 });
  expect(await jobs.rig.queues.withdraw.getFailedCount()).toBe(0);
});

it('a worker of a paused queue is left alone, and closes in time although it hangs', async () => {
  const jobs = new JobRig();
  await jobs.rig.queues.withdraw.pause();
  const { worker, untilHung } = startHanging('waitForJob', jobs);
  await untilHung();
  await jobs.rig.enqueue(['p']);
  await systemClock.sleep(6_000);
  expect(jobs).toMatchObject({ ran: [], replaced: [] });
  const startedAt = performance.now();
  await worker.close();
  expect(performance.now() - startedAt).toBeLessThan(6_000);
});

it('polls that became due without a worker are made at the rate, also by several', async () => {
  const [RATE, PAYOUTS] = [10, 60];
  const rig = queuesOfTest();
  const polledAt: number[] = [];
  const payoutIds = Array.from({ length: PAYOUTS }, (_, index) => `p${index}`);
  await rig.enqueue(payoutIds);
  for (const payoutId of payoutIds) await rig.accept(payoutId);
  // As after an outage: all are due, and wait since an hour.
  const delayed = rig.queues.transactionstatus.toKey('delayed');
  const longAgo = (Date.now() - 3_600_000) * 0x1000;
  for (const payoutId of payoutIds) await rig.account.redis.zadd(delayed, longAgo, `${payoutId}~0`);
  const start = () =>
    startPolls(rig, { pollMinMs: 600_000, pollMaxMs: 600_000, pollRate: RATE }, async () => {
      polledAt.push(performance.now());
      return Promise.resolve({ kind: 'pending' });
    });
  const first = start();
  start();
  await until('a part is polled', () => polledAt.length > PAYOUTS / 3);
  // One of them takes over all: this is no cause for a burst either.
  await first.close();
  await until('all are polled', () => polledAt.length >= PAYOUTS, 30_000);
  // The limiter counts whole seconds: the end of one and the beginning of the next may be in the same second.
  const inASecond = polledAt.map((from) => polledAt.filter((at) => at >= from && at < from + 1_000).length);
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(2 * RATE);
  const tookMs = (polledAt.at(-1) ?? 0) - (polledAt[0] ?? 0);
  expect(tookMs).toBeGreaterThan(((PAYOUTS - 2 * RATE) / RATE) * 1_000);
  expect(tookMs).toBeLessThan(((2 * PAYOUTS) / RATE) * 1_000);
});

it('jobs that are retried, promoted and added by hand send nothing again, nor too early', async () => {
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

const STRUCTURES = ['wait', 'active', 'delayed', 'prioritized', 'meta', 'marker', 'stalled'];
const WITHDRAW = STRUCTURES.map((name) => `withdraw:${name}`);

/** What is deleted, and the state of the payouts that lose their jobs; without one the queue heals itself. */
const DAMAGES: readonly (readonly [keys: readonly string[], loses?: 'queued' | 'in_progress'])[] = [
  [['withdraw:wait'], 'queued'],
  [['withdraw:active']],
  [['withdraw:meta']],
  [['withdraw:plain-5~0'], 'queued'],
  [WITHDRAW, 'queued'],
  [['transactionstatus:delayed'], 'in_progress'],
  [['transactionstatus:meta']],
  [['transactionstatus:plain-1~0'], 'in_progress'],
  [[...WITHDRAW, ...STRUCTURES.map((name) => `transactionstatus:${name}`)], 'queued'],
];
const PLATFORM_IDS = DAMAGES.map((_, index) => 1_000 + index);
const PLAIN = ['plain-1', 'plain-2', 'plain-3', 'plain-4', 'plain-5'];
const PAYOUTS = PLAIN.length + 2;

// All at once, each in an account of its own: each waits for most of a minute.
it('keys of the queues are deleted under a worker: every payout is sent once', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const operator = new Redis(redis.url);
  afterTest(async () => operator.quit());
  // So that each queue has jobs when it is damaged, and a poll is under way.
  const sandbox = { settleAfterMs: 8_000, latencyAfterMs: 100 };
  const world = await worldOfTest({ redis, platformIds: PLATFORM_IDS, sandbox });
  const recreated: { platformId: number; state: string; count: number; at: number }[] = [];
  const observe = (platformId: number) => ({
    ...noObserver,
    jobsRecreated: (state: string, count: number) =>
      void recreated.push({ platformId, state, count, at: performance.now() }),
  });
  const quick = { leaseMs: 2_000, quarantineMs: 0, pollMinMs: 200, pollMaxMs: 1_000 };
  const { accounts } = await openWorkerIn(world, { observe }, quick, PLATFORM_IDS);
  await until('all send', () => accounts.every(({ status }) => status.role === 'sender'));

  const damage = async ([names, loses]: (typeof DAMAGES)[number], index: number) => {
    const platformId = 1_000 + index;
    const producer = world.producerOf(platformId);
    const keyOf = (name: string) => `{payouts:${platformId}}:${name}`;
    const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });
    const later = { ...payout('later'), notBefore: new Date(Date.now() + 20_000) };
    await producer.enqueueMany([...PLAIN.map(payout), { ...payout('urgent'), priority: 2 }, later]);
    await until('one is in progress', async () => (await producer.stats()).in_progress > 0);
    // A job may just be on its way from one structure to another.
    await until('something was there to delete', async () => (await operator.del(...names.map(keyOf))) > 0);
    const damagedAt = performance.now();

    await until('all are completed', async () => (await producer.stats()).completed === PAYOUTS, 120_000);
    expectPace(world.sandbox, platformId);
    const again = recreated.filter((each) => each.platformId === platformId);
    if (loses !== undefined) expect(again.find(({ state }) => state === loses)?.at).toBeLessThan(damagedAt + 60_000);
    expect(again.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(2 * PAYOUTS);
    const countJobs = async () => {
      const lengths = ['withdraw', 'transactionstatus'].flatMap((queue) => [
        ...['wait', 'active', 'paused'].map(async (name) => operator.llen(keyOf(`${queue}:${name}`))),
        ...['delayed', 'prioritized'].map(async (name) => operator.zcard(keyOf(`${queue}:${name}`))),
      ]);
      return (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
    };
    await until('the queues are empty', async () => (await countJobs()) === 0, 20_000);
    await delay(1_000);
    expect(world.sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
  };
  const found = await Promise.allSettled(DAMAGES.map(damage));
  expect(found).toEqual(DAMAGES.map(() => ({ status: 'fulfilled', value: undefined })));
}, 240_000);
