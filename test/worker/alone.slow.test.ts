import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { findFreePort, startLocalRedis } from '../../src/sandbox/local-redis.js';
import { createFakeClock } from '../doubles/fake-clock.js';
import { connectAdmin } from '../support/redis-cluster.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { expectPace, expectPromisesKept, type PayoutWorld, untilSent, worldOfTest } from './support/payout-world.js';

const INTERVAL_MS = 1_010;

const gapsOf = ({ sandbox }: PayoutWorld) => {
  const { arrivalsAtMs } = sandbox.stats();
  return arrivalsAtMs.slice(1).map((at, index) => at - (arrivalsAtMs[index] ?? 0));
};

const medianOf = (values: readonly number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;

it('the trouble of some accounts does not slow another of the process', async () => {
  const PAYOUTS = 12;
  const redis = closeAfterTest(await startOwnRedis());
  const worlds = await Promise.all([1, 2, 3, 4, 5].map(async (id) => worldOfTest({ redis, platformIds: [id] })));
  const [well, blocked, hanging] = worlds as [PayoutWorld, PayoutWorld, PayoutWorld];
  // In a process without trouble, on the same machine meanwhile.
  const beside = await worldOfTest({ redis });
  blocked.sandbox.addFaults([{ kind: 'block', times: 1 }]);
  hanging.sandbox.addFaults([{ kind: 'hang' }]);
  await writeFile(join(well.dir, 'wrong.key'), 'k-wrong-0123456789', { mode: 0o600 });
  const nowhere = { baseUrl: `http://127.0.0.1:${await findFreePort()}` };
  const environment = await well.writeAccounts(
    worlds.map(({ platformId, sandbox }) => ({
      ...{ platformId, baseUrl: sandbox.url, intervalMs: INTERVAL_MS, withdrawTimeoutMs: 3_000, timeoutMs: 1_000 },
      ...(platformId === 4 && nowhere),
      ...(platformId === 5 && { secretKeyFile: 'wrong.key' }),
    })),
  );
  await Promise.all([...worlds, beside].map(async (world) => world.enqueue(PAYOUTS)));
  well.startWorker({ environment });
  beside.startWorker({ environment: { WITHDRAW_INTERVAL_MS: String(INTERVAL_MS) } });
  for (const world of [well, beside])
    await until('all are final', async () => (await world.producer.stats()).completed === PAYOUTS);
  await until('the hanging one has stopped', async () => (await hanging.producer.stats()).paused);
  // A busy machine delays both. The trouble of another account would delay most gaps of one, by a second and more.
  expect(medianOf(gapsOf(well))).toBeLessThan(1.2 * medianOf(gapsOf(beside)));
  expect(Math.min(...gapsOf(well))).toBeGreaterThanOrEqual(1_000);
  expect(await Promise.all(worlds.slice(1).map(async ({ producer }) => producer.stats()))).toMatchObject([
    { paused: true, rejected: 1, queued: PAYOUTS - 1 },
    { paused: true, unknown: 2, queued: PAYOUTS - 2 },
    { queued: PAYOUTS, unknown: 0 },
    { paused: true, completed: 0, unknown: 0 },
  ]);
}, 120_000);

const HOUR_MS = 3_600_000;
/** Forward and back by a second and an hour, and at last an hour behind the truth. */
const OFFSETS_MS = [1_000, 0, -1_000, 0, HOUR_MS, 0, -HOUR_MS];

it.each(['Redis', 'the worker'])(
  'the clock of %s jumps by a second and by an hour while payouts run: that changes nothing',
  async (whose) => {
    const PAYOUTS = 3 * OFFSETS_MS.length + 3;
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
    const world = await worldOfTest({ redis, sandbox: { settleAfterMs: 3_000 } });
    // On the same machine meanwhile, with clocks that do not jump.
    const steady = await worldOfTest({ redis: closeAfterTest(await startOwnRedis()) });
    const worker = world.startWorker({ environment: workerClock.environment });
    steady.startWorker();
    /** How far the worker's clock is ahead, in ms, by its newest line of log. */
    const readWorkerOffset = async () => {
      const before = worker.log().length;
      await until('the worker logs', () => worker.log().indexOf('\n', before) > 0);
      const [, time = ''] = /"time":"([^"]+)"/.exec(worker.log().slice(before)) ?? [];
      return Date.parse(time) - Date.now();
    };
    const clock = whose === 'Redis' ? redisClock : workerClock;
    for (const each of [world, steady]) await each.enqueue(PAYOUTS);
    for (const [index, offsetMs] of OFFSETS_MS.entries()) {
      await untilSent(world, 3 * index + 2);
      await clock.set(offsetMs);
      const from = Date.now();
      const [seconds] = await admin.time();
      const redisMs = Number(seconds) * 1_000 - redisClock.offsetMs;
      // Whole seconds, and some ms of rounding.
      expect(redisMs).toBeGreaterThan(from - 1_500);
      expect(redisMs).toBeLessThan(Date.now() + 500);
      // A line that was read late looks like another clock: only the next one tells.
      const isSet = async () => Math.abs((await readWorkerOffset()) - workerClock.offsetMs) < 500;
      await until('the clock is set', isSet);
    }
    await until('all are completed', async () => (await world.producer.stats()).completed === PAYOUTS, 90_000);
    await untilSent(steady, PAYOUTS);
    await expectPromisesKept(world);
    expect(world.sandbox.stats().arrivals).toBe(PAYOUTS);
    const [gaps, steadyGaps] = [gapsOf(world), gapsOf(steady)];
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    // A jump of Redis costs as long as it takes to be noticed.
    expect(sum(gaps)).toBeLessThan(1.5 * sum(steadyGaps));
    expect(Math.max(...gaps)).toBeLessThan(8 * Math.max(...steadyGaps));
  },
  240_000,
);

/** Of the worker, for jobs that are missing: it takes two looks. */
const LOOK_EVERY_MS = 20_000;

it('sending continues within a minute where 100,000 payouts lose their jobs at once', async () => {
  const server = closeAfterTest(await startOwnRedis(['--appendfsync', 'no']));
  const redis = new Redis(server.url);
  afterTest(async () => redis.quit());
  const world = await worldOfTest({ redis: server });
  const key = (name: string) => `{payouts:${world.platformId}}:${name}`;
  const enqueuedFrom = performance.now();
  await world.enqueue(100_000);
  const enqueuedInMs = performance.now() - enqueuedFrom;
  const worker = world.startWorker({ environment: { ALLOW_VOLATILE_REDIS: 'true' } });
  const sent = () => world.sandbox.stats().arrivals;
  await until('sending has begun', () => sent() >= 8);

  await redis.unlink(key('withdraw:wait'));
  const damagedAt = performance.now();
  const before = sent();
  // One or two were on their way.
  await until('sending continues', () => sent() > before + 2, 240_000);
  // What is done after two looks depends on the machine, as the enqueueing did: it takes a part of that.
  expect(performance.now() - damagedAt).toBeLessThan(2 * LOOK_EVERY_MS + enqueuedInMs);

  await until('the repair is told', () => worker.log().includes('re-created missing jobs'), 500_000);
  const from = sent();
  await until('sending continues after it', () => sent() >= from + 10);

  expectPace(world.sandbox);
  const waiting = await redis.lrange(key('withdraw:wait'), 0, -1);
  expect(new Set(waiting).size).toBe(waiting.length);
}, 600_000);
