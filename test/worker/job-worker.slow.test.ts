import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Worker } from 'bullmq';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { JobWorker, type RunJob } from '../../src/worker/job-worker.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';

const SPEED = 10;

/** Ten times as fast for what watches the worker; BullMQ has the machine's. */
const fastClock: Clock = {
  ...systemClock,
  now: () => systemClock.now() * SPEED,
  sleep: async (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

type Internals = Record<'waitForJob' | 'moveToActive', (this: Worker, ...args: unknown[]) => Promise<unknown>>;
const internals = Worker.prototype as unknown as Internals;

let rig: QueueRig;
let redis: RedisClient;
let worker: JobWorker | undefined;
let replaced: string[];
let ran: string[];
let running: number;
let mostRunning: number;
let goOn: () => void;

beforeEach(() => {
  rig = openQueueRig();
  redis = connectRedis(testRedisUrl(), 'queue');
  replaced = [];
  ran = [];
  running = mostRunning = 0;
  goOn = () => undefined;
});

afterEach(async () => {
  jest.restoreAllMocks();
  goOn();
  await worker?.close();
  await rig.close();
  await closeRedis(redis);
});

function start(): void {
  const runtime = {
    ...{ queueRedis: redis, ledger: rig.account.ledger, queues: rig.queues, clock: fastClock, logger: silentLogger },
    observer: { ...noObserver, jobWorkerReplaced: (queue: string) => void replaced.push(queue) },
  };
  const run: RunJob = async ({ data }) => {
    mostRunning = Math.max(mostRunning, (running += 1));
    await systemClock.sleep(50);
    running -= 1;
    ran.push(data.payoutId);
    return 'done';
  };
  worker = new JobWorker(runtime, 'withdraw', run, { concurrency: 1, ratePerSecond: 100 });
}

/** The first worker that calls it hangs in it until it is told to go on (`goOn`); those after it do not. */
function hangFirst(method: keyof Internals): () => boolean {
  const original = internals[method];
  const callers = new Set<Worker>();
  const told = new Promise<void>((resolve) => (goOn = resolve));
  jest.spyOn(internals, method).mockImplementation(async function (this: Worker, ...args: unknown[]) {
    callers.add(this);
    const [first] = callers;
    if (first === this) await told;
    return original.apply(this, args);
  });
  return () => callers.size > 0;
}

it('replaces a worker whose wait for a job never ends, and the jobs run', async () => {
  const isHung = hangFirst('waitForJob');
  start();
  await until('it waits for a job', isHung);
  await rig.enqueue(['p', 'q']);
  await until('both ran', () => ran.length === 2);
  expect({ ran, replaced, mostRunning }).toEqual({ ran: ['p', 'q'], replaced: ['withdraw'], mostRunning: 1 });
});

it('a worker that was replaced and comes back with a job runs it no more: the job is for the one in its place', async () => {
  const isHung = hangFirst('moveToActive');
  await rig.enqueue(Array.from({ length: 20 }, (_, index) => `p${index}`));
  start();
  await until('it hangs', isHung);
  await until('the other one runs', () => ran.length === 2);
  goOn();
  await until('all ran', () => ran.length === 20);
  expect(new Set(ran).size).toBe(20);
  expect({ replaced, mostRunning }).toEqual({ replaced: ['withdraw'], mostRunning: 1 });
  expect(await rig.queues.withdraw.getFailedCount()).toBe(0);
});

it('closes in time although the worker hangs', async () => {
  const isHung = hangFirst('waitForJob');
  start();
  await until('it waits for a job', isHung);
  const startedAt = performance.now();
  await worker?.close();
  expect(performance.now() - startedAt).toBeLessThan(6_000);
  // BullMQ would open a connection again.
  goOn = () => undefined;
});

it.each<[string, () => Promise<unknown>]>([
  [
    'has a job whose time has not come',
    async () =>
      rig.queues.withdraw.add(
        'p',
        { payoutId: 'p', paymentId: 1, amount: '1', addressTo: 'a' },
        { delay: 100 * 365 * 24 * 3_600_000 },
      ),
  ],
  ['may not run a job because the queue is paused', async () => rig.queues.withdraw.pause()],
])('leaves a worker alone that does nothing because it %s', async (_, prepare) => {
  const isHung = hangFirst('waitForJob');
  await prepare();
  start();
  await until('it waits for a job', isHung);
  if (await rig.queues.withdraw.isPaused()) await rig.enqueue(['p']);
  await systemClock.sleep(5_500);
  expect(replaced).toEqual([]);
});

it('asks one command at a time while its queue is empty', async () => {
  const { redis: own } = rig.account.connection;
  const [asked, counted] = [jest.spyOn(own, 'exists'), jest.spyOn(own, 'pipeline')];
  start();
  await until('it has asked twice', () => asked.mock.calls.length === 2);
  expect(counted).not.toHaveBeenCalled();
  await rig.queues.withdraw.pause();
  await rig.enqueue(['p']);
  await until('it counts what may be due', () => counted.mock.calls.length > 0);
});

it('leaves a worker alone that looks for jobs, though it gets none for a long time', async () => {
  await rig.enqueue(['p']);
  // As where another process takes all that the rate allows.
  await rig.account.redis.set(rig.queues.withdraw.toKey('limiter'), '1000', 'EX', 60);
  start();
  await systemClock.sleep(6_000);
  expect({ ran, replaced }).toEqual({ ran: [], replaced: [] });
});
