import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { payThrough } from './support/pay-through.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';

/** A worker on a connection of the application: it goes where that goes, and keeps its own rules of how to fail. */

type Where = Omit<RedisOptions, 'replyMapping'>;

/** What would break a promise, or every command, if the worker took it too. */
const HOSTILE: Where = {
  ...{ lazyConnect: true, stringNumbers: true, enableAutoPipelining: true, enableOfflineQueue: false },
  ...{ maxRetriesPerRequest: 50, commandTimeout: 1, connectTimeout: 1, readOnly: true },
  ...{ reconnectOnError: () => 2, retryStrategy: () => null },
};

it('pays with the user and database of a connection, by host and port or a socket, and does not use it', async () => {
  const { url, dir } = closeAfterTest(await startOwnRedis(['--unixsocket', 'redis.sock']));
  const port = Number(new URL(url).port);
  const admin = new Redis(port);
  await admin.call('ACL', 'SETUSER', 'shop', 'on', '>pw', 'allkeys', 'allcommands', 'allchannels');
  await admin.config('SET', 'requirepass', 'other');
  admin.disconnect();
  const user = { username: 'shop', password: 'pw' };
  const pay = async (where: Where, db: number, status: string): Promise<void> => {
    const connection = new Redis({ ...where, ...user, db });
    if (status === 'ready') await connection.subscribe('news');
    await payThrough(connection, `redis://shop:pw@127.0.0.1:${port}/${db}`);
    expect(connection.status).toBe(status);
    connection.disconnect();
  };
  await pay({ host: '127.0.0.1', port, ...HOSTILE }, 3, 'wait');
  await pay({ path: join(dir, 'redis.sock'), ...HOSTILE }, 3, 'wait');
  // An open one stays open.
  await pay({ port, maxRetriesPerRequest: null }, 0, 'ready');
});
