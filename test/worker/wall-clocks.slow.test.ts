import { beforeEach, expect, it } from '@jest/globals';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { createFakeClock, type FakeClock } from '../doubles/fake-clock.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { until } from '../support/until.js';
import { closeAfterTest, folderOfTest } from './support/close-after-test.js';
import { expectPromisesKept, untilSent, worldOfTest, type PayoutWorld } from './support/payout-world.js';
import type { WorkerProcess } from './support/worker-process.js';

/** Wall clocks of real processes are set forward and back while payouts run. The gateway's are true. */

const HOUR_MS = 3_600_000;
const INTERVAL_MS = 1_010;
/** Forward and back by a second and an hour, and at last an hour behind the truth. */
const OFFSETS_MS = [1_000, 0, -1_000, 0, HOUR_MS, 0, -HOUR_MS];
const PAYOUTS = 3 * OFFSETS_MS.length + 3;

let redis: LocalRedis;
let world: PayoutWorld;
let redisClock: FakeClock;
beforeEach(async () => {
  const dir = await folderOfTest('clocks');
  redisClock = await createFakeClock(dir, 'redis');
  redis = await startLocalRedis({ environment: { PATH: process.env['PATH'] ?? '', ...redisClock.environment } });
  closeAfterTest({ close: async () => redis.stop() });
  // So that some payments are always being polled when a clock jumps.
  world = await worldOfTest({ redis, sandbox: { settleAfterMs: 3_000 } });
});

const startWorker = ({ environment }: FakeClock): WorkerProcess => world.startWorker({ environment });

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
const untilAhead = async (worker: WorkerProcess, ms: number): Promise<void> =>
  until('the clock is set', async () => Math.abs((await readWorkerOffset(worker)) - ms) < 500);

it.each(['Redis', 'the worker', 'both'])(
  'the clock of %s jumps by a second and by an hour while payouts run: that changes nothing',
  async (whose) => {
    const workerClock = await createFakeClock(world.dir, 'worker');
    const clocks = { Redis: [redisClock], 'the worker': [workerClock] }[whose] ?? [redisClock, workerClock];
    const worker = startWorker(workerClock);
    await world.enqueue(PAYOUTS);
    for (const [index, offsetMs] of OFFSETS_MS.entries()) {
      await untilSent(world, 3 * index + 2);
      for (const clock of clocks) await clock.set(offsetMs);
      expect(Math.abs((await readRedisOffset()) - redisClock.offsetMs)).toBeLessThan(1_500);
      await untilAhead(worker, workerClock.offsetMs);
    }
    await until('all are completed', async () => (await world.producer.stats()).completed === PAYOUTS, 90_000);
    await expectPromisesKept(world);
    const { arrivals, arrivalsAtMs, meanGapMs } = world.sandbox.stats();
    expect(arrivals).toBe(PAYOUTS);
    const gaps = arrivalsAtMs.slice(1).map((at, index) => at - (arrivalsAtMs[index] ?? 0));
    // Without a jump it is the interval and a few ms; a jump of Redis costs as long as it takes to be noticed.
    expect(meanGapMs).toBeLessThan(1.5 * INTERVAL_MS);
    expect(Math.max(...gaps)).toBeLessThan(8_000);
  },
  240_000,
);
