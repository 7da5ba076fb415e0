import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { expectPace, worldOfTest } from './support/payout-world.js';

it('sending continues within a minute where 100,000 payouts lose their jobs at once', async () => {
  const server = closeAfterTest(await startOwnRedis(['--appendfsync', 'no']));
  const redis = new Redis(server.url);
  afterTest(async () => redis.quit());
  const world = await worldOfTest({ redis: server });
  const key = (name: string): string => `{payouts:${world.platformId}}:${name}`;
  await world.enqueue(100_000);
  const worker = world.startWorker({ environment: { ALLOW_VOLATILE_REDIS: 'true' } });
  const sent = (): number => world.sandbox.stats().arrivals;
  await until('sending has begun', () => sent() >= 8);

  await redis.unlink(key('withdraw:wait'));
  const damagedAt = performance.now();
  const before = sent();
  // One or two were on their way.
  await until('sending continues', () => sent() > before + 2, 120_000);
  expect(performance.now() - damagedAt).toBeLessThan(70_000);

  const haveJobs = async (): Promise<boolean> => {
    const payouts = ['state:queued', 'state:sending'].map(async (name) => redis.zcard(key(name)));
    const jobs = ['withdraw:wait', 'withdraw:active'].map(async (name) => redis.llen(key(name)));
    const [queued = 0, sending = 0, waiting = 0, active = 0] = await Promise.all([...payouts, ...jobs]);
    return waiting + active >= queued + sending;
  };
  await until('all have a job again', haveJobs, 300_000);
  await until('the repair is told', () => worker.log().includes('re-created missing jobs'), 300_000);
  const from = sent();
  await until('sending continues after it', () => sent() >= from + 10);

  expectPace(world.sandbox);
  const waiting = await redis.lrange(key('withdraw:wait'), 0, -1);
  expect(new Set(waiting).size).toBe(waiting.length);
}, 600_000);
