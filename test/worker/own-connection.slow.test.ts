import { it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { startRedisCluster } from '../support/redis-cluster.js';
import { MASTER_NAME, startRedisSentinel } from '../support/redis-sentinel.js';
import { closeAfterTest } from './support/close-after-test.js';
import { payThrough } from './support/pay-through.js';

const nodesOf = (url: string): { host: string; port: number }[] =>
  [...url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => ({ host: '127.0.0.1', port: Number(port) }));

it('a worker pays through the Sentinels of a connection', async () => {
  const { url } = closeAfterTest(await startRedisSentinel());
  const connection = new Redis({ sentinels: nodesOf(url), name: MASTER_NAME, lazyConnect: true });
  await payThrough(connection, url);
  connection.disconnect();
});

it('a worker pays through the cluster of a connection, whatever that does to commands', async () => {
  const { url } = closeAfterTest(await startRedisCluster());
  const redisOptions = { stringNumbers: true, commandTimeout: 1 };
  const hostile = { lazyConnect: true, enableOfflineQueue: false, scaleReads: 'slave', redisOptions } as const;
  const connection = new Cluster(nodesOf(url), hostile);
  await payThrough(connection, url);
  connection.disconnect();
});
