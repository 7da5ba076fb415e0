import { expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { RedisUnavailableError } from '../../src/base/errors.js';
import type { RedisClient } from '../../src/base/redis.js';
import { cents } from '../support/account.js';
import { type ReplicatedRedis, startRedisCluster } from '../support/redis-cluster.js';
import { startRedisSentinel } from '../support/replicated-redis.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from '../worker/support/close-after-test.js';
import {
  expectPromisesKept,
  openWorkerIn,
  untilSettledAfterOutage,
  worldOfTest,
} from '../worker/support/payout-world.js';

/** What an application needs so that no call of it hangs. */
const LIMITED = { commandTimeout: 5_000, maxRetriesPerRequest: 3 };

const addressesOf = (url: string) =>
  [...url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => ({ host: '127.0.0.1', port: Number(port) }));

const KINDS: readonly (readonly [string, () => Promise<ReplicatedRedis>, (url: string) => RedisClient])[] = [
  ['a Cluster', startRedisCluster, (url) => new Cluster(addressesOf(url), { redisOptions: LIMITED })],
  ['Sentinels', startRedisSentinel, (url) => new Redis({ ...LIMITED, sentinels: addressesOf(url), name: 'payouts' })],
];

it.each(KINDS)(
  "an application's own connection to %s takes payouts of two accounts, reports them, and pays them after a failover",
  async (_, start, connect) => {
    const redis = closeAfterTest(await start());
    const world = await worldOfTest({ redis });
    const { platformId } = world;
    const connection = connect(redis.url).on('error', () => undefined);
    afterTest(() => {
      connection.disconnect();
    });
    const producer = closeAfterTest(new PayoutProducer({ connection, platformId }));
    const other = new PayoutProducer({ connection, platformId: platformId + 1 });
    expect(await producer.enqueueMany(cents(['p-1', 'p-2']))).toMatchObject({ created: 2 });
    expect(await other.enqueueMany(cents(['other']))).toMatchObject({ created: 1 });
    await other.close();
    // The connection is the application's.
    expect(await connection.get('anything')).toBeNull();
    const worker = await openWorkerIn(world, { connection });
    const { state } = await producer.waitFor('p-1', { timeoutMs: 60_000 });
    expect(state).toBe('completed');
    const key = `{payouts:${platformId}}:ledger`;
    await redis.killMaster(key);
    // A payout counts as accepted only once every known replica has it.
    await expect(producer.enqueueMany(cents(['p-3', 'p-4']))).rejects.toThrow(RedisUnavailableError);
    await redis.startMasterAgain(key);
    await until('payouts are accepted again', async () =>
      producer
        .enqueueMany(cents(['p-3', 'p-4']))
        .then(() => true)
        .catch(() => false),
    );
    await untilSettledAfterOutage(world, 4);
    const seen = new Set<string | undefined>();
    for await (const { to, payoutId } of producer.events({ group: 'books' })) {
      if (to === 'completed') seen.add(payoutId);
      if (seen.size === 4) break;
    }
    expect([...seen].sort()).toEqual(['p-1', 'p-2', 'p-3', 'p-4']);
    await expectPromisesKept(world);
    await worker.stop();
    expect(await connection.get('anything')).toBeNull();
  },
  180_000,
);
