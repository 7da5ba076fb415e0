import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { endAllWorkers } from './support/worker-process.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';
import { until } from '../support/until.js';

let server: LocalRedis;
let redis: Redis;
let world: PayoutWorld;

beforeEach(async () => {
  server = await startLocalRedis({ args: ['--appendfsync', 'no'] });
  redis = new Redis(server.url);
  world = await openWorld({ redis: server });
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
  await redis.quit();
  await server.stop();
});

const QUEUED = 100_000;

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

it('sending continues within a minute, at its pace, where 100,000 payouts lose their jobs at once', async () => {
  const key = (name: string): string => `{payouts:${world.platformId}}:${name}`;
  await world.enqueue(QUEUED);
  const worker = world.startWorker({ environment: { ALLOW_VOLATILE_REDIS: 'true' } });
  const sent = (): number => world.sandbox.stats().arrivals;
  await until('sending has begun', () => sent() >= 8);

  await redis.unlink(key('withdraw:wait'));
  const damagedAt = performance.now();
  const before = sent();
  // One or two were on their way.
  await until('sending continues', () => sent() > before + 2, 120_000);
  expect(performance.now() - damagedAt).toBeLessThan(70_000);

  await until(
    'all have a job again',
    async () => {
      const [queued, sending] = await Promise.all([
        redis.zcard(key('state:queued')),
        redis.zcard(key('state:sending')),
      ]);
      const [waiting, active] = await Promise.all([
        redis.llen(key('withdraw:wait')),
        redis.llen(key('withdraw:active')),
      ]);
      return waiting + active >= queued + sending;
    },
    300_000,
  );
  await until('the repair is told', () => worker.log().includes('re-created missing jobs'), 300_000);
  await until(
    'sending continues after it',
    (
      (from) => () =>
        sent() >= from + 10
    )(sent()),
  );

  const { arrivalsAtMs, smallestGapMs, duplicatePayments, blocked } = world.sandbox.stats();
  expect({ duplicatePayments, blocked }).toEqual({ duplicatePayments: [], blocked: false });
  expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
  const gaps = arrivalsAtMs.slice(1).map((at, index) => at - (arrivalsAtMs[index] ?? at));
  // The repair does not slow the sends beside it down.
  expect(median(gaps.slice(before + 2))).toBeLessThan(median(gaps.slice(0, before - 1)) * 1.5);

  const waiting = await redis.lrange(key('withdraw:wait'), 0, -1);
  expect(new Set(waiting).size).toBe(waiting.length);
}, 600_000);
