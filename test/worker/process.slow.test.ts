import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { Queue, type Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { toJobId } from '../../src/queues/payout-queues.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { cents, numbered } from '../support/account.js';
import { runCli } from '../support/cli.js';
import {
  loggerWithThrowingChildren,
  throwingLogger,
  throwingObserver,
  throwingTelemetry,
} from '../support/throwing-watchers.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { fastClock, internals, JobRig, queuesOfTest, startPolls } from './support/job-rig.js';
import { startOwnRedis } from './support/own-redis.js';
import {
  expectPace,
  expectPromisesKept,
  openWorkerIn,
  untilLeased,
  untilSent,
  untilSettled,
  untilSettledAfterOutage,
  worldOfTest,
} from './support/payout-world.js';
import { openSharedAccounts } from './support/shared-accounts.js';
import { startWatchedWorker } from './support/watched-worker.js';

it('the first worker sends at once where someone states that the account is new', async () => {
  const world = await worldOfTest();
  await world.enqueue(2);
  const worker = world.startWorker({ environment: { LEASE_MS: '15000', TAKEOVER_QUARANTINE_MS: '5000' } });
  await until('it waits', async () => (await worker.get('/readyz')).body.includes('standby'));
  expect(world.sandbox.arrivals()).toEqual([]);
  const statedAt = performance.now();
  const state = async () => runCli(['new-account', '--yes', '--reason', 'first deployment'], { env: world.env });
  expect(await state()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Noted: account \d+ is new/) });
  await untilSent(world, 1);
  expect(performance.now() - statedAt).toBeLessThan(15_000);
  await untilLeased(worker);
  await untilSettled(world, 2);
  await expectPromisesKept(world);
});

it('SIGTERM waits for the response under way, begins no new send, and exits 0', async () => {
  const world = await worldOfTest({ sandbox: { latencyAfterMs: 1_500 } });
  await world.enqueue(3);
  const worker = world.startWorker();
  await untilSent(world, 1);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(world.sandbox.stats().arrivals).toBe(1);
  expect(await world.producer.stats()).toMatchObject({ queued: 2, in_progress: 1, unknown: 0, sender: null });
});

it('SIGTERM a second signal ends at once, and what was under way becomes unknown', async () => {
  const world = await worldOfTest({ sandbox: { latencyAfterMs: 20_000 } });
  await world.enqueue(1);
  const worker = world.startWorker();
  await untilSent(world, 1);
  worker.kill('SIGTERM');
  await delay(300);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  world.startWorker();
  await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
  expect(world.sandbox.stats().arrivals).toBe(1);
});

const AILING_DISK = new URL('../told/ailing-disk.mjs', import.meta.url).href;

it('SIGTERM ends a worker whose disk hangs; a host with another disk sends its payout', async () => {
  const world = await worldOfTest();
  const control = join(world.dir, 'disk');
  await writeFile(control, 'well');
  execFileSync('mkfifo', [`${control}.pipe`]);
  const environment = { NODE_OPTIONS: `--import=${AILING_DISK}`, AILING_DISK: control };
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  await world.enqueue(1, 'FIRST');
  await untilSettled(world, 1);
  await writeFile(control, 'hang');
  await world.enqueue(2);
  await until('it begins', async () => (await world.producer.get('P-1'))?.state === 'sending');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe('SIGTERM');
  expect(worker.log()).toContain('worker stopped');
  expect((await world.producer.get('P-1'))?.state).toBe('queued');
  world.startWorker({ journalDir: join(world.dir, 'other-journal') });
  await untilSettled(world, 3);
  expect(await world.producer.stats()).toMatchObject({ completed: 3, unknown: 0 });
  expect((await world.producer.get('P-1'))?.attempt).toBe(2);
});

const cannotBeMade = (): never => {
  throw new Error('no observer today');
};

it.each([
  ['those', { logger: throwingLogger, observe: () => throwingObserver, telemetry: throwingTelemetry }],
  ['the making of those', { logger: loggerWithThrowingChildren, observe: cannotBeMade }],
])('what a producer enqueues whose watchers throw is paid once where %s of a worker throws', async (_, watchers) => {
  const world = await worldOfTest();
  await openWorkerIn(world, watchers);
  const thrown = { logger: throwingLogger, telemetry: throwingTelemetry };
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...thrown }));
  await producer.enqueueMany(cents(numbered(2)));
  await until('all completed', async () => (await world.producer.stats()).completed === 2);
  for (const payoutId of numbered(2)) expect((await world.producer.get(payoutId))?.gatewayId).toMatch(/^[0-9a-f]{64}$/);
  await expectPromisesKept(world);
  expect((await world.producer.stats()).sender?.epoch).toBe(1);
});

async function sendSome(count: number, sent: number) {
  const redis = closeAfterTest(await startOwnRedis());
  const world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: 400 } });
  await world.enqueue(count);
  const worker = world.startWorker();
  await untilSent(world, sent);
  return { redis, world, worker };
}

it.each([
  ['SIGKILL', 500],
  ['SIGTERM', 30_000],
] as const)('where %s ends Redis for %i ms, each payout is paid once, and no response is lost', async (signal, ms) => {
  const { redis, world } = await sendSome(5, 2);
  process.kill(redis.pid, signal);
  await delay(ms);
  await redis.startAgain();
  await untilSettledAfterOutage(world, 5);
  await expectPromisesKept(world);
  expect((await world.producer.stats()).unknown).toBe(0);
});

it('where Redis hangs for good, SIGTERM still ends the worker with 0', async () => {
  const { redis, worker } = await sendSome(3, 1);
  process.kill(redis.pid, 'SIGSTOP');
  worker.kill('SIGTERM');
  expect(await Promise.race([worker.ended, delay(45_000)])).toBe(0);
  process.kill(redis.pid, 'SIGCONT');
});

it('a Redis that may forget gets no send until it keeps its writes', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const { enqueue, producer, readyz, sandbox } = await startWatchedWorker({ redis });
  const untilArrived = async (count: number) => until(`${count} are sent`, () => sandbox.stats().arrivals === count);
  await enqueue('A');
  await untilArrived(1);
  await redis.stop();
  await redis.startAgain(['--appendfsync', 'no']);
  await until('it is enqueued', async () => (await enqueue('B').catch(() => 'not yet')) === undefined);
  await until('it is not ready', async () => JSON.stringify(await readyz()).includes('appendfsync is no'));
  expect(await readyz()).toMatchObject([503, { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }] }]);
  await delay(1_500);
  expect(await producer.get('B')).toMatchObject({ state: 'queued', attempt: 0 });
  const admin = new Redis(redis.url);
  await admin.config('SET', 'appendfsync', 'always');
  await admin.quit();
  await untilArrived(2);
});

it('a process that shares accounts and stands still past its lease gives up what others took, and gets it back', async () => {
  const shared = closeAfterTest(await openSharedAccounts(2));
  await shared.enqueue(15);
  const workers = [shared.startWorker(), shared.startWorker()];
  const untilShared = async (...shares: readonly number[]) =>
    until(`the leases are held ${shares.join()}`, async () => {
      const holders = [...(await shared.holders()).values()];
      return workers.map(({ pid }) => holders.filter((each) => each === pid).length).join() === shares.join();
    });
  const sentForBoth = () => shared.platformIds.every((id) => shared.sandbox.arrivals(id).length > 1);
  await untilShared(1, 1);
  await until('both are sent for', sentForBoth);
  workers[0]?.kill('SIGSTOP');
  await untilShared(0, 2);
  workers[0]?.kill('SIGCONT');
  await untilShared(1, 1);
  await until('all are settled', async () => shared.isSettled(15), 60_000);
  shared.expectPromisesKept();
}, 120_000);

it('a replaced worker that comes back with a job leaves it to the one in its place', async () => {
  const jobs = new JobRig();
  await jobs.rig.enqueue(Array.from({ length: 20 }, (_, index) => `p${index}`));
  const { moveToActive } = internals;
  const callers = new Set<Worker>();
  let goOn = (): void => undefined;
  const told = new Promise<void>((resolve) => (goOn = resolve));
  jest.spyOn(internals, 'moveToActive').mockImplementation(async function (this: Worker, ...args: unknown[]) {
    callers.add(this);
    const [first] = callers;
    if (first === this) await told;
    return moveToActive.apply(this, args);
  });
  jobs.start({ concurrency: 1, ratePerSecond: 100 }, fastClock(10));
  await until('the other one runs', () => jobs.ran.length >= 2);
  goOn();
  await until('all ran', () => jobs.ran.length === 20);
  expect(new Set(jobs.ran).size).toBe(20);
  expect(jobs).toMatchObject({ replaced: ['withdraw'], mostRunning: 1 });
  expect(await jobs.rig.queues.withdraw.getFailedCount()).toBe(0);
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
  // The limiter counts whole seconds: two of its seconds may touch one of these.
  const inASecond = polledAt.map((from) => polledAt.filter((at) => at >= from && at < from + 1_000).length);
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(2 * RATE);
  const tookMs = (polledAt.at(-1) ?? 0) - (polledAt[0] ?? 0);
  expect(tookMs).toBeLessThan(((2 * PAYOUTS) / RATE) * 1_000);
});

const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `wallet-${payoutId}` });

it('jobs that are retried, promoted and added by hand send nothing again, nor too early', async () => {
  const world = await worldOfTest();
  const { platformId, producer, redisUrl, sandbox } = world;
  const connection = connectRedis(redisUrl, 'commands');
  afterTest(async () => closeRedis(connection));
  const queue = closeAfterTest(new Queue('withdraw', { connection, prefix: `{payouts:${platformId}}` }));
  const jobOf = async (payoutId: string) => queue.getJob(toJobId({ payoutId }));
  sandbox.addFaults([{ kind: 'reject', addresses: ['wallet-rejected'], message: 'wrong address' }]);
  // Longer than a busy machine takes to start the worker and to send the others.
  const notBefore = new Date(Date.now() + 20_000);
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
  await (await jobOf('low'))?.retry('completed');
  await queue.retryJobs({ state: 'failed' });
  for (const payoutId of ['rejected', 'low']) await queue.add('withdraw', { payoutId }, { jobId: `copy-${payoutId}` });
  await until('all jobs are done', async () => {
    const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
    return Object.values(counts).every((count) => count === 0);
  });
  expect(sandbox.stats().arrivals).toBe(before);
  expect((await producer.get('rejected'))?.state).toBe('rejected');
});

it('jobs that are delayed by hand, or that BullMQ cannot read, run within a minute', async () => {
  const world = await worldOfTest();
  const { platformId, producer, redisUrl } = world;
  const connection = connectRedis(redisUrl, 'commands');
  afterTest(async () => closeRedis(connection));
  const queue = closeAfterTest(new Queue('withdraw', { connection, prefix: `{payouts:${platformId}}` }));
  world.startWorker();
  await producer.enqueue(payout('first'));
  await until('the worker sends', async () => (await producer.stats()).completed === 1);

  const notBefore = new Date(Date.now() + 3_000);
  for (const payoutId of ['delayed', 'garbled']) await producer.enqueue({ ...payout(payoutId), notBefore });
  const jobOf = async (payoutId: string) => queue.getJob(toJobId({ payoutId }));
  await until('both have a job', async () => (await Promise.all(['delayed', 'garbled'].map(jobOf))).every(Boolean));
  await (await jobOf('delayed'))?.changeDelay(24 * 60 * 60 * 1_000);
  await connection.hset(queue.toKey(toJobId({ payoutId: 'garbled' })), 'data', 'no JSON');

  await until('all are completed', async () => (await producer.stats()).completed === 3, 120_000);
  for (const payoutId of ['delayed', 'garbled']) {
    const sending = (await producer.get(payoutId))?.history.find(({ to }) => to === 'sending');
    expect(Date.parse(sending?.at ?? '')).toBeGreaterThanOrEqual(notBefore.getTime());
    expect(Date.parse(sending?.at ?? '')).toBeLessThan(notBefore.getTime() + 60_000);
  }
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
    await delay(3_000);
    expect(world.sandbox.stats(platformId).arrivals).toBe(PAYOUTS);
  };
  const found = await Promise.allSettled(DAMAGES.map(damage));
  expect(found).toEqual(DAMAGES.map(() => ({ status: 'fulfilled', value: undefined })));
}, 240_000);
