import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { startOwnRedis } from './support/own-redis.js';
import { closeAfterTest, readMetric, startWatchedWorker, type WatchedWorker } from './support/watched-worker.js';
import { until } from '../support/until.js';

/** A payout that may be sent is sent within this time. */
const LONG_ENOUGH_MS = 1_500;

async function askReadyz({ url }: WatchedWorker): Promise<[status: number, body: unknown]> {
  const response = await fetch(`${url}/readyz`);
  return [response.status, await response.json()];
}

async function readGauges({ url, platformId }: WatchedWorker): Promise<Record<string, number | undefined>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const account = { platform_id: String(platformId) };
  return {
    mayForget: readMetric(text, 'payouts_redis_may_forget'),
    replicasMissing: readMetric(text, 'payouts_replicas_missing'),
    leaseHeld: readMetric(text, 'payouts_lease_held', account),
    sendingRefused: readMetric(text, 'payouts_sending_refused', account),
  };
}

const ALL_IS_WELL = { mayForget: 0, replicasMissing: 0, leaseHeld: 1, sendingRefused: 0 };

async function send(watched: WatchedWorker, payoutId: string): Promise<void> {
  const { arrivals } = watched.sandbox.stats();
  await until('it is enqueued', async () =>
    watched.enqueue(payoutId).then(
      () => true,
      () => false,
    ),
  );
  await until(`${payoutId} is sent`, () => watched.sandbox.stats().arrivals > arrivals);
}

async function expectNothingIsSent({ sandbox }: WatchedWorker): Promise<void> {
  const { arrivals } = sandbox.stats();
  await delay(LONG_ENOUGH_MS);
  expect(sandbox.stats().arrivals).toBe(arrivals);
}

it('a Redis that came back with settings with which it may forget gets no send, until they are right again', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const watched = await startWatchedWorker({ redisUrl: redis.url });
  await send(watched, 'A');
  expect(await readGauges(watched)).toEqual(ALL_IS_WELL);

  await redis.stop();
  await redis.startAgain(['--appendfsync', 'no']);
  await until('it is enqueued', async () =>
    watched.enqueue('B').then(
      () => true,
      () => false,
    ),
  );
  await until(
    'it is not ready',
    async () => (await askReadyz(watched))[0] === 503 && (await readGauges(watched))['mayForget'] === 1,
  );
  expect(await askReadyz(watched)).toMatchObject([
    503,
    {
      ready: false,
      redis: 'up',
      accounts: [{ role: 'refused', cause: 'redis', epoch: 1, reason: expect.stringContaining('appendfsync is no') }],
    },
  ]);
  await expectNothingIsSent(watched);
  expect(await readGauges(watched)).toEqual({ ...ALL_IS_WELL, mayForget: 1 });
  expect(await watched.producer.get('B')).toMatchObject({ state: 'queued', attempt: 0 });

  const admin = new Redis(redis.url);
  await admin.config('SET', 'appendfsync', 'always');
  await admin.quit();
  await until('B is sent', () => watched.sandbox.stats().arrivals === 2);
  expect(await askReadyz(watched)).toMatchObject([200, { accounts: [{ role: 'sender', epoch: 1 }] }]);
  expect(await readGauges(watched)).toEqual(ALL_IS_WELL);
});

it('ALLOW_VOLATILE_REDIS accepts it later as at the start', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const watched = await startWatchedWorker({ redisUrl: redis.url, allowVolatileRedis: true });
  await send(watched, 'A');
  await redis.stop();
  await redis.startAgain(['--appendfsync', 'no']);
  await send(watched, 'B');
  expect(await readGauges(watched)).toMatchObject({ mayForget: 0, replicasMissing: 0 });
});

it('a replica that acknowledges nothing stops sends, and what was begun is put back and sent once', async () => {
  const servers = closeAfterTest(await startMasterWithReplica());
  const watched = await startWatchedWorker({ redisUrl: servers.master.url });
  await send(watched, 'A');
  servers.link.silence(['requests', 'replies']);
  await watched.enqueue('B');
  await until('it is said', async () => (await readGauges(watched))['replicasMissing'] === 1);
  await expectNothingIsSent(watched);
  expect(await askReadyz(watched)).toMatchObject([
    503,
    { accounts: [{ role: 'refused', cause: 'redis', reason: expect.stringContaining('Only 0 of 1 replicas') }] },
  ]);
  await until('B is put back', async () => (await watched.producer.get('B'))?.state === 'queued');
  servers.link.heal();
  await until('B is sent', () => watched.sandbox.stats().arrivals === 2);
  expect(watched.sandbox.stats()).toMatchObject({ duplicatePayments: [], blocked: false });
  expect(await readGauges(watched)).toEqual(ALL_IS_WELL);
});
