import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/until.js';
import { startOwnRedis, type OwnRedis } from './support/own-redis.js';
import {
  expectPromisesKept,
  untilSent,
  untilSettledAfterOutage,
  worldOfTest,
  type PayoutWorld,
} from './support/payout-world.js';
import { closeAfterTest, startWatchedWorker } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';

let redis: OwnRedis;
let world: PayoutWorld;
beforeEach(async () => {
  redis = closeAfterTest(await startOwnRedis());
});

async function sendSome(count: number, sent: number): Promise<WorkerProcess> {
  world = await worldOfTest({ redis, sandbox: { latencyBeforeMs: { min: 0, max: 300 }, latencyAfterMs: 400 } });
  await world.enqueue(count);
  const worker = world.startWorker();
  await untilSent(world, sent);
  return worker;
}

async function expectAllPaid(count: number): Promise<void> {
  await untilSettledAfterOutage(world, count);
  await expectPromisesKept(world);
}

it.each([
  ['SIGKILL', 500],
  ['SIGTERM', 30_000],
] as const)('where %s ends Redis for %i ms, each payout is paid once, and no response is lost', async (signal, ms) => {
  await sendSome(5, 2);
  process.kill(redis.pid, signal);
  await delay(ms);
  await redis.startAgain();
  await expectAllPaid(5);
  expect((await world.producer.stats()).unknown).toBe(0);
});

it('where Redis hangs for good, SIGTERM still ends the worker with 0', async () => {
  const worker = await sendSome(3, 1);
  process.kill(redis.pid, 'SIGSTOP');
  worker.kill('SIGTERM');
  expect(await Promise.race([worker.ended, delay(45_000)])).toBe(0);
  process.kill(redis.pid, 'SIGCONT');
});

it('where Redis hangs for longer than the lease, the work continues', async () => {
  await sendSome(5, 2);
  world.startWorker();
  process.kill(redis.pid, 'SIGSTOP');
  await delay(6_000);
  process.kill(redis.pid, 'SIGCONT');
  await expectAllPaid(5);
});

it.each([false, true])('a Redis that may forget gets a send only where that is allowed: %s', async (allowed) => {
  const worker = { allowVolatileRedis: allowed };
  const { enqueue, metric, producer, readyz, sandbox } = await startWatchedWorker({ redis, worker });
  const untilArrived = async (count: number): Promise<void> =>
    until(`${count} are sent`, () => sandbox.stats().arrivals === count);
  await enqueue('A');
  await untilArrived(1);
  await redis.stop();
  await redis.startAgain(['--appendfsync', 'no']);
  await until('it is enqueued', async () => (await enqueue('B').catch(() => 'not yet')) === undefined);
  if (allowed) return untilArrived(2);
  await until('it is not ready', async () => JSON.stringify(await readyz()).includes('appendfsync is no'));
  expect(await readyz()).toMatchObject([503, { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }] }]);
  // It would be sent within this time.
  await delay(1_500);
  expect(await producer.get('B')).toMatchObject({ state: 'queued', attempt: 0 });
  expect(sandbox.stats().arrivals).toBe(1);
  expect([await metric('payouts_sending_refused'), await metric('payouts_lease_held')]).toEqual([0, 1]);
  const admin = new Redis(redis.url);
  await admin.config('SET', 'appendfsync', 'always');
  await admin.quit();
  await untilArrived(2);
  expect((await producer.stats()).sender?.epoch).toBe(1);
});
