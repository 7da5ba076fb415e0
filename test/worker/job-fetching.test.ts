import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Worker } from 'bullmq';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { JobWorker, type RunJob } from '../../src/worker/job-worker.js';
import { noObserver } from '../../src/worker/sender/worker-observer.js';
import { openQueueRig, type QueueRig } from '../queues/support/queue-rig.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';

/** BullMQ looks for jobs that wait without a marker only after twenty seconds. */
const AT_ONCE_MS = 3_000;

type Internals = Record<'moveToActive' | 'waitForJob', (this: Worker, ...args: unknown[]) => Promise<unknown>>;

let rig: QueueRig;
let redis: RedisClient;
let worker: JobWorker;
let ran: string[];
let running: Set<string>;
/** Jobs of these payouts end only when they are let go. */
let held: Set<string>;

beforeEach(() => {
  rig = openQueueRig();
  redis = connectRedis(testRedisUrl(), 'queue');
  ran = [];
  running = new Set();
  held = new Set();
});

afterEach(async () => {
  jest.restoreAllMocks();
  held.clear();
  await worker.close();
  await rig.close();
  await closeRedis(redis);
});

function start(concurrency: number, ratePerSecond = 1_000): void {
  const runtime = {
    ...{ queueRedis: redis, ledger: rig.account.ledger, queues: rig.queues },
    ...{ clock: systemClock, observer: noObserver, logger: silentLogger },
  };
  const run: RunJob = async ({ data: { payoutId } }) => {
    running.add(payoutId);
    while (held.has(payoutId)) await systemClock.sleep(20);
    running.delete(payoutId);
    ran.push(payoutId);
    return 'done';
  };
  worker = new JobWorker(runtime, 'withdraw', run, { concurrency, ratePerSecond });
}

it('takes every job that is due at once, up to as many as may run together', async () => {
  held = new Set(['a', 'b', 'c', 'd']);
  await rig.enqueue(['a', 'b', 'c', 'd']);
  start(3);
  await until('three run', () => running.size === 3, AT_ONCE_MS);
  held.delete('a');
  await until('the fourth runs', () => running.has('d'), AT_ONCE_MS);
});

it('takes a job at once that comes while another one runs', async () => {
  held = new Set(['long']);
  await rig.enqueue(['long']);
  start(20);
  await until('it runs', () => running.has('long'), AT_ONCE_MS);
  for (const payoutId of ['p', 'q', 'r']) {
    await rig.enqueue([payoutId]);
    await until('the new one ran', () => ran.includes(payoutId), AT_ONCE_MS);
  }
});

it('takes all that is left once the rate allows it', async () => {
  const payoutIds = Array.from({ length: 12 }, (_, index) => `p${index}`);
  await rig.enqueue(payoutIds);
  start(20, 4);
  await until('all ran', () => ran.length === payoutIds.length, 4 * AT_ONCE_MS);
});

it('asks once for each of many jobs that are due', async () => {
  const asked = jest.spyOn(Worker.prototype as unknown as Internals, 'moveToActive');
  const waited = jest.spyOn(Worker.prototype as unknown as Internals, 'waitForJob');
  const payoutIds = Array.from({ length: 60 }, (_, index) => `p${index}`);
  held = new Set(payoutIds);
  await rig.enqueue(payoutIds);
  start(20);
  await until('as many as may run together run', () => running.size === 20, AT_ONCE_MS);
  expect(asked.mock.calls.length).toBeLessThan(25);
  expect(waited.mock.calls.length).toBeLessThan(10);
});

it('asks again soon after its connection failed', async () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  jest.spyOn(Worker.prototype as unknown as Internals, 'moveToActive').mockRejectedValueOnce(refused);
  await rig.enqueue(['p']);
  start(1);
  await until('it ran', () => ran.length === 1, AT_ONCE_MS);
});
