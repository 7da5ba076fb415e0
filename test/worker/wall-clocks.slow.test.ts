import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { createFakeClock, type FakeClock } from '../doubles/fake-clock.js';
import { expectPromisesKept, openWorld, untilSent, untilSettled, type PayoutWorld } from './support/payout-world.js';
import { until } from '../support/until.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** Wall clocks of real processes are set forward and back while payouts run. The gateway's, which judges, are true. */

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const INTERVAL_MS = 1_010;

/** Forward and back by a second and an hour, and at last an hour behind the truth. */
const OFFSETS_MS = [SECOND_MS, 0, -SECOND_MS, 0, HOUR_MS, 0, -HOUR_MS];
const PAYOUTS = 3 * OFFSETS_MS.length + 3;

let dir: string;
let redisClock: FakeClock;
let workerClock: FakeClock;
let redis: LocalRedis;
let world: PayoutWorld;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-clocks-'));
  redisClock = await createFakeClock(dir, 'redis');
  workerClock = await createFakeClock(dir, 'worker');
  redis = await startLocalRedis({ environment: { PATH: process.env['PATH'] ?? '', ...redisClock.environment } });
  // Payments take a few seconds, so that some are always being polled when a clock jumps.
  world = await openWorld({ redis, sandbox: { settleAfterMs: 3_000 } });
});
afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

function startWorker(clock: FakeClock): WorkerProcess {
  return world.startWorker({ environment: clock.environment });
}

async function untilCompleted(count: number, withinMs: number): Promise<void> {
  await until(`${count} are completed`, async () => (await world.producer.stats()).completed === count, withinMs);
}

/** How far the clock of the Redis server is ahead, in ms, as the server says. */
async function readRedisOffset(): Promise<number> {
  const admin = connectAdmin(redis.port);
  const [seconds] = await admin.time();
  admin.disconnect();
  return Number(seconds) * 1_000 - Date.now();
}

/** How far the clock of the worker is ahead, in ms, as the line of its log says that it has just written. */
async function readWorkerOffset(worker: WorkerProcess): Promise<number> {
  const before = worker.log().length;
  await until('the worker logs', () => worker.log().indexOf('\n', before) > 0);
  const [, time = ''] = /"time":"([^"]+)"/.exec(worker.log().slice(before)) ?? [];
  return Date.parse(time) - Date.now();
}

/** A line that was read late looks like another clock: only the next one tells. */
async function untilWorkerIsAhead(worker: WorkerProcess, offsetMs: number): Promise<void> {
  await until('the clock of the worker is set', async () => {
    return Math.abs((await readWorkerOffset(worker)) - offsetMs) < 500;
  });
}

async function expectClocksSet(worker: WorkerProcess): Promise<void> {
  expect(Math.abs((await readRedisOffset()) - redisClock.offsetMs)).toBeLessThan(1_500);
  await untilWorkerIsAhead(worker, workerClock.offsetMs);
}

/** Each payout is paid once, nobody had to look, and no jump cost more than a moment. */
async function expectNothingChanged(): Promise<void> {
  await expectPromisesKept(world);
  const { arrivals, arrivalsAtMs, meanGapMs } = world.sandbox.stats();
  const stats = await world.producer.stats();
  expect({ ...stats, arrivals }).toMatchObject({ completed: PAYOUTS, unknown: 0, paused: false, arrivals: PAYOUTS });
  const gaps = arrivalsAtMs.slice(1).map((at, index) => at - (arrivalsAtMs[index] ?? 0));
  // Without a jump it is the interval and a few ms; a jump of Redis costs as long as it takes to be noticed.
  expect(meanGapMs).toBeLessThan(1.5 * INTERVAL_MS);
  expect(Math.max(...gaps)).toBeLessThan(8_000);
}

describe('wall clocks that jump by a second and by an hour while payouts run change nothing', () => {
  it.each([
    ['of Redis', () => [redisClock]],
    ['of the worker', () => [workerClock]],
    ['of both', () => [redisClock, workerClock]],
  ])(
    '%s',
    async (_, findClocks) => {
      const worker = startWorker(workerClock);
      await world.enqueue(PAYOUTS);
      for (const [index, offsetMs] of OFFSETS_MS.entries()) {
        await untilSent(world, 3 * index + 2);
        for (const clock of findClocks()) await clock.set(offsetMs);
        await expectClocksSet(worker);
      }
      await untilCompleted(PAYOUTS, 90_000);
      await expectNothingChanged();
    },
    240_000,
  );
});

it.each([
  ['behind', HOUR_MS],
  ['ahead of', -HOUR_MS],
])(
  'a worker whose clock is an hour %s that of the sender takes over, its polls too',
  async (_, offsetMs) => {
    await workerClock.set(offsetMs);
    const first = startWorker(workerClock);
    await world.enqueue(8);
    await untilSent(world, 4);
    await untilWorkerIsAhead(first, offsetMs);
    expect((await world.producer.stats()).in_progress).toBeGreaterThan(0);
    startWorker(await createFakeClock(dir, 'second'));
    await untilSent(world, 5);
    first.kill('SIGKILL');
    await first.ended;
    await untilSettled(world, 8);
    expect((await world.producer.stats()).unknown).toBeLessThanOrEqual(1);
    expect((await world.producer.stats()).sender?.epoch).toBe(2);
    await expectPromisesKept(world);
  },
  120_000,
);
