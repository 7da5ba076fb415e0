import { expect, it } from '@jest/globals';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { createFakeClock } from '../doubles/fake-clock.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { until } from '../support/until.js';
import { afterTest, folderOfTest } from './support/close-after-test.js';
import { expectPromisesKept, untilSent, worldOfTest } from './support/payout-world.js';

/** Wall clocks of real processes are set forward and back while payouts run. The gateway's are true. */

const HOUR_MS = 3_600_000;
const INTERVAL_MS = 1_010;
/** Forward and back by a second and an hour, and at last an hour behind the truth. */
const OFFSETS_MS = [1_000, 0, -1_000, 0, HOUR_MS, 0, -HOUR_MS];
const PAYOUTS = 3 * OFFSETS_MS.length + 3;

it.each(['Redis', 'the worker', 'both'])(
  'the clock of %s jumps by a second and by an hour while payouts run: that changes nothing',
  async (whose) => {
    const dir = await folderOfTest('clocks');
    const [redisClock, workerClock] = [await createFakeClock(dir, 'redis'), await createFakeClock(dir, 'worker')];
    const redis = await startLocalRedis({
      environment: { PATH: process.env['PATH'] ?? '', ...redisClock.environment },
    });
    afterTest(async () => redis.stop());
    const admin = connectAdmin(redis.port);
    afterTest(() => {
      admin.disconnect();
    });
    // So that some payments are always being polled when a clock jumps.
    const world = await worldOfTest({ redis, sandbox: { settleAfterMs: 3_000 } });
    const worker = world.startWorker({ environment: workerClock.environment });
    /** How far the worker's clock is ahead, in ms, as the line of its log says that it has just written. */
    const readWorkerOffset = async (): Promise<number> => {
      const before = worker.log().length;
      await until('the worker logs', () => worker.log().indexOf('\n', before) > 0);
      const [, time = ''] = /"time":"([^"]+)"/.exec(worker.log().slice(before)) ?? [];
      return Date.parse(time) - Date.now();
    };
    const clocks = { Redis: [redisClock], 'the worker': [workerClock] }[whose] ?? [redisClock, workerClock];
    await world.enqueue(PAYOUTS);
    for (const [index, offsetMs] of OFFSETS_MS.entries()) {
      await untilSent(world, 3 * index + 2);
      for (const clock of clocks) await clock.set(offsetMs);
      const [seconds] = await admin.time();
      expect(Math.abs(Number(seconds) * 1_000 - Date.now() - redisClock.offsetMs)).toBeLessThan(1_500);
      // A line that was read late looks like another clock: only the next one tells.
      const isSet = async () => Math.abs((await readWorkerOffset()) - workerClock.offsetMs) < 500;
      await until('the clock is set', isSet);
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
