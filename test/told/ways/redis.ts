import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort, startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { until } from '../../support/until.js';
import type { Way } from '../way.js';

/** Redis is unavailable, or unfit for a send. */
export const REDIS_WAYS: readonly Way[] = [
  {
    name: 'Redis is down',
    happens: async ({ redis }) => redis.stop(),
    told: {
      headline: 'redisDown',
      alerts: ['PayoutsRedisDown'],
      readyz: { status: 503, words: '"redis":"unavailable"' },
      doctor: { exit: 1, check: 'Redis', words: 'not reachable' },
      runbook: 'redis-down',
    },
  },
  {
    name: 'Redis hangs',
    happens: async ({ redis }) => {
      process.kill(redis.pid, 'SIGSTOP');
      return Promise.resolve();
    },
    told: {
      headline: 'redisDown',
      alerts: ['PayoutsRedisDown'],
      readyz: { status: 503, words: '"redis":"unavailable"' },
      doctor: { exit: 1, check: 'Redis', words: 'not reachable' },
      runbook: 'redis-down',
    },
  },
  {
    name: 'Redis became a read-only replica',
    happens: async ({ client }) => {
      await client.replicaof('127.0.0.1', await findFreePort());
    },
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsRedisRefusesWrites'],
      readyz: { status: 503, words: 'Redis refuses writes: it is a read-only replica' },
      doctor: { exit: 1, check: 'Redis writes', words: 'it is a read-only replica' },
      runbook: 'redis-refused',
    },
  },
  {
    name: 'Redis is full',
    happens: async ({ client }) => {
      await client.config('SET', 'maxmemory', '1mb');
    },
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsRedisRefusesWrites'],
      readyz: { status: 503, words: 'Redis refuses writes: it is full' },
      doctor: { exit: 1, check: 'Redis writes', words: 'it is full (maxmemory)' },
      runbook: 'redis-refused',
    },
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
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsRedisRefusesWrites'],
      readyz: { status: 503, words: 'Redis refuses writes: it cannot write to its disk' },
      doctor: { exit: 1, check: 'Redis writes', words: 'it cannot write to its disk' },
      runbook: 'redis-refused',
    },
  },
  {
    name: 'Redis has fewer replicas than its min-replicas-to-write',
    happens: async ({ client }) => {
      await client.config('SET', 'min-replicas-to-write', '1');
    },
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsRedisRefusesWrites'],
      readyz: { status: 503, words: 'Redis refuses writes: too few of its replicas are connected' },
      doctor: { exit: 1, check: 'Redis writes', words: 'too few of its replicas are connected' },
      runbook: 'redis-refused',
    },
  },
  {
    name: 'Redis came back empty',
    happens: async (rig) => {
      await rig.pay(1);
      await rig.client.flushall();
    },
    told: {
      headline: 'mismatch',
      alerts: ['PayoutsObjection', 'PayoutsSendingRefused', 'PayoutsNoSender'],
      readyz: { status: 503, words: 'another ledger' },
      doctor: { exit: 1, check: 'journal and ledger', words: 'another ledger' },
      runbook: 'ledger-mismatch',
    },
  },
  {
    name: 'Redis may forget what was sent, and so a worker ends at its start',
    happens: async (rig) =>
      rig.replaceWorker(async () => {
        await rig.client.config('SET', 'appendfsync', 'no');
      }),
    told: {
      headline: 'silent',
      alerts: ['PayoutsWorkerMissing'],
      readyz: { status: 'none', words: '' },
      doctor: { exit: 1, check: 'Redis keeps its data', words: 'appendfsync is no' },
      runbook: 'worker-missing',
    },
  },
  {
    name: 'Redis may forget what was sent',
    happens: async ({ client }) => {
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    },
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsRedisMayForget'],
      readyz: { status: 503, words: 'This Redis may forget what was sent: maxmemory-policy is allkeys-lru' },
      doctor: { exit: 1, check: 'Redis keeps its data', words: 'maxmemory-policy is allkeys-lru' },
      runbook: 'redis-refused',
    },
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
    told: {
      headline: 'redisRefused',
      alerts: ['PayoutsReplicasMissing'],
      readyz: { status: 503, words: 'Only 0 of 1 replicas of Redis acknowledge writes' },
      doctor: { exit: 1, check: 'Redis replicas', words: 'only 0 of 1 acknowledge writes' },
      runbook: 'redis-refused',
    },
  },
];
