import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/until.js';
import { startOwnRedis } from './support/own-redis.js';
import { closeAfterTest, startWatchedWorker, type WatchedWorker } from './support/watched-worker.js';

/** A payout that may be sent is sent within this time. */
const LONG_ENOUGH_MS = 1_500;

async function enqueue(watched: WatchedWorker, payoutId: string): Promise<void> {
  const isEnqueued = async (): Promise<boolean> =>
    watched.enqueue(payoutId).then(
      () => true,
      () => false,
    );
  await until('it is enqueued', isEnqueued);
}

async function send(watched: WatchedWorker, payoutId: string): Promise<void> {
  const { arrivals } = watched.sandbox.stats();
  await enqueue(watched, payoutId);
  await until(`${payoutId} is sent`, () => watched.sandbox.stats().arrivals > arrivals);
}

/** Nothing is sent, with this reason, though the lease is held. */
async function expectHindered({ readyz, sandbox, metric }: WatchedWorker, reason: string): Promise<void> {
  await until(`it is not ready: ${reason}`, async () => JSON.stringify(await readyz()).includes(reason));
  expect(await readyz()).toMatchObject([503, { redis: 'up', accounts: [{ role: 'refused', cause: 'redis' }] }]);
  const { arrivals } = sandbox.stats();
  await delay(LONG_ENOUGH_MS);
  expect(sandbox.stats().arrivals).toBe(arrivals);
  expect([await metric('payouts_sending_refused'), await metric('payouts_lease_held')]).toEqual([0, 1]);
}

it.each([false, true])(
  'a Redis that may forget gets a send: only where that is allowed: %s',
  async (allowVolatileRedis) => {
    const redis = closeAfterTest(await startOwnRedis());
    const watched = await startWatchedWorker({ redis, worker: { allowVolatileRedis } });
    await send(watched, 'A');
    await redis.stop();
    await redis.startAgain(['--appendfsync', 'no']);
    if (allowVolatileRedis) return send(watched, 'B');
    await enqueue(watched, 'B');
    await expectHindered(watched, 'appendfsync is no');
    expect(await watched.producer.get('B')).toMatchObject({ state: 'queued', attempt: 0 });
    const admin = new Redis(redis.url);
    await admin.config('SET', 'appendfsync', 'always');
    await admin.quit();
    await until('B is sent', () => watched.sandbox.stats().arrivals === 2);
    expect((await watched.producer.stats()).sender?.epoch).toBe(1);
  },
);
