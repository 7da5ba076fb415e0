import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort, startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { until } from '../../support/until.js';
import { told, type Way } from '../way.js';

/** Redis is unavailable, or unfit for a send. */
export const REDIS_WAYS: readonly Way[] = [
  {
    name: 'Redis is down',
    happens: async ({ redis }) => redis.stop(),
    told: told(
      'redisDown',
      ['PayoutsRedisDown'],
      [503, '"redis":"unavailable"'],
      [1, 'Redis', 'not reachable'],
      'redis-down',
    ),
  },
  {
    name: 'Redis hangs',
    happens: async ({ redis }) => {
      process.kill(redis.pid, 'SIGSTOP');
      return Promise.resolve();
    },
    told: told(
      'redisDown',
      ['PayoutsRedisDown'],
      [503, '"redis":"unavailable"'],
      [1, 'Redis', 'not reachable'],
      'redis-down',
    ),
  },
  {
    name: 'Redis became a read-only replica',
    happens: async ({ client }) => {
      await client.replicaof('127.0.0.1', await findFreePort());
    },
    told: told(
      'redisRefused',
      ['PayoutsRedisRefusesWrites'],
      [503, 'Redis refuses writes: it is a read-only replica'],
      [1, 'Redis writes', 'it is a read-only replica'],
      'redis-refused',
    ),
  },
  {
    name: 'Redis is full',
    happens: async ({ client }) => {
      await client.config('SET', 'maxmemory', '1mb');
    },
    told: told(
      'redisRefused',
      ['PayoutsRedisRefusesWrites'],
      [503, 'Redis refuses writes: it is full'],
      [1, 'Redis writes', 'it is full (maxmemory)'],
      'redis-refused',
    ),
  },
  {
    name: 'Redis cannot save to its disk',
    happens: async ({ client }) => {
      const [, dir = ''] = await client.config('GET', 'dir');
      // Nothing can be saved under the name of a folder.
      await mkdir(join(dir, 'dump.rdb'));
      await client.config('SET', 'save', '3600 1');
      await client.bgsave();
    },
    told: told(
      'redisRefused',
      ['PayoutsRedisRefusesWrites'],
      [503, 'Redis refuses writes: it cannot write to its disk'],
      [1, 'Redis writes', 'it cannot write to its disk'],
      'redis-refused',
    ),
  },
  {
    name: 'Redis has fewer replicas than its min-replicas-to-write',
    happens: async ({ client }) => {
      await client.config('SET', 'min-replicas-to-write', '1');
    },
    told: told(
      'redisRefused',
      ['PayoutsRedisRefusesWrites'],
      [503, 'Redis refuses writes: too few of its replicas are connected'],
      [1, 'Redis writes', 'too few of its replicas are connected'],
      'redis-refused',
    ),
  },
  {
    name: 'Redis came back empty',
    happens: async (rig) => {
      await rig.pay(1);
      await rig.client.flushall();
    },
    told: told(
      'mismatch',
      ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender'],
      [503, 'another ledger'],
      [1, 'journal and ledger', 'another ledger'],
      'ledger-mismatch',
    ),
  },
  {
    name: 'Redis may forget what was sent, and so a worker ends at its start',
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await rig.client.config('SET', 'appendfsync', 'no');
      }),
    told: told(
      'silent',
      ['PayoutsWorkerMissing'],
      ['none', ''],
      [1, 'Redis keeps its data', 'appendfsync is no'],
      'worker-missing',
    ),
  },
  {
    name: 'Redis may forget what was sent',
    happens: async ({ client }) => {
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    },
    told: told(
      'redisRefused',
      ['PayoutsRedisMayForget'],
      [503, 'This Redis may forget what was sent: maxmemory-policy is allkeys-lru'],
      [1, 'Redis keeps its data', 'maxmemory-policy is allkeys-lru'],
      'redis-refused',
    ),
  },
  {
    name: 'A replica of Redis is missing',
    environment: { REDIS_REPLICAS: '1' },
    prepare: async ({ redis, client, others }) => {
      const { port } = new URL(redis.url);
      await client.config('SET', 'repl-diskless-sync-delay', '0');
      const replica = await startLocalRedis({ args: ['--replicaof', `127.0.0.1 ${port}`] });
      others.push({ close: async () => replica.stop() });
      await until('the replica is online', async () => /slave0:.*state=online/.test(await client.info('replication')));
    },
    happens: async ({ others }) => {
      await others[0]?.close();
    },
    told: told(
      'redisRefused',
      ['PayoutsReplicasMissing'],
      [503, 'Only 0 of 1 replicas of Redis acknowledge writes'],
      [1, 'Redis replicas', 'only 0 of 1 acknowledge writes'],
      'redis-refused',
    ),
  },
];
