import { afterEach, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import type { RedisClient } from '../../src/base/redis.js';
import { type ReplicatedRedis, startRedisCluster } from '../support/redis-cluster.js';
import { MASTER_NAME, startRedisSentinel } from '../support/redis-sentinel.js';
import { payThrough } from './support/pay-through.js';

let servers: ReplicatedRedis | undefined;
let connection: RedisClient | undefined;
afterEach(async () => {
  connection?.disconnect();
  await servers?.close();
});

function nodesOf(url: string): { host: string; port: number }[] {
  return [...url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => ({ host: '127.0.0.1', port: Number(port) }));
}

it('a worker pays through the Sentinels of a connection', async () => {
  servers = await startRedisSentinel();
  connection = new Redis({ sentinels: nodesOf(servers.url), name: MASTER_NAME, lazyConnect: true });
  expect(await payThrough(connection, servers.url)).toMatchObject({ state: 'completed' });
});

it('a worker pays through the cluster of a connection, whatever that does to commands', async () => {
  servers = await startRedisCluster();
  const redisOptions = { stringNumbers: true, commandTimeout: 1 };
  const hostile = { lazyConnect: true, enableOfflineQueue: false, scaleReads: 'slave', redisOptions } as const;
  connection = new Cluster(nodesOf(servers.url), hostile);
  expect(await payThrough(connection, servers.url)).toMatchObject({ state: 'completed' });
});
