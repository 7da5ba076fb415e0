import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { type LocalRedis, startLocalRedis } from '../../src/sandbox/local-redis.js';
import { payThrough } from './support/pay-through.js';

/** A worker on a connection of the application: it goes where that goes, and keeps its own rules of how to fail. */

type Where = Omit<RedisOptions, 'replyMapping'>;

let redis: LocalRedis;
beforeAll(async () => {
  redis = await startLocalRedis({ args: ['--unixsocket', 'redis.sock'] });
  const admin = new Redis(redis.port);
  await admin.call('ACL', 'SETUSER', 'shop', 'on', '>pw', 'allkeys', 'allcommands', 'allchannels');
  await admin.config('SET', 'requirepass', 'other');
  admin.disconnect();
});
afterAll(async () => redis.stop());

/** What would break a promise, or every command, if the worker took it too. */
const HOSTILE: Where = {
  lazyConnect: true,
  stringNumbers: true,
  enableAutoPipelining: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 50,
  commandTimeout: 1,
  connectTimeout: 1,
  readOnly: true,
  reconnectOnError: () => 2,
  retryStrategy: () => null,
};

describe('a worker with a connection', () => {
  it.each<[string, () => Where]>([
    ['host and port', () => ({ host: '127.0.0.1', port: redis.port })],
    ['a socket', () => ({ path: join(redis.dir, 'redis.sock') })],
  ])('pays through %s, with its user and database, and does not use the connection', async (_, where) => {
    const connection = new Redis({ ...where(), ...HOSTILE, username: 'shop', password: 'pw', db: 3 });
    const payout = await payThrough(connection, `redis://shop:pw@127.0.0.1:${redis.port}/3`);
    expect(payout).toMatchObject({ state: 'completed' });
    expect(connection.status).toBe('wait');
    connection.disconnect();
  });

  it('leaves an open connection open', async () => {
    const connection = new Redis({ port: redis.port, username: 'shop', password: 'pw', maxRetriesPerRequest: null });
    await connection.subscribe('news');
    expect(await payThrough(connection, `redis://shop:pw@127.0.0.1:${redis.port}`)).toMatchObject({
      state: 'completed',
    });
    expect(connection.status).toBe('ready');
    connection.disconnect();
  });
});
