import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { openWorkerIn, worldOfTest } from './support/payout-world.js';

type Where = Omit<RedisOptions, 'replyMapping'>;

/** What would break a promise, or every command, if the worker took it too. */
const HOSTILE: Where = {
  ...{ lazyConnect: true, stringNumbers: true, enableAutoPipelining: true, enableOfflineQueue: false },
  ...{ maxRetriesPerRequest: 50, commandTimeout: 1, connectTimeout: 1, readOnly: true },
  ...{ reconnectOnError: () => 2, retryStrategy: () => null },
};

it('a worker pays where a connection of the application goes, and does not use it', async () => {
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
    const world = await worldOfTest({ redis: { url: `redis://shop:pw@127.0.0.1:${port}/${db}` } });
    await world.enqueue(1);
    await openWorkerIn(world, { connection });
    await until('it is paid', async () => (await world.producer.stats()).completed === 1);
    expect(connection.status).toBe(status);
    connection.disconnect();
  };
  await pay({ host: '127.0.0.1', port, ...HOSTILE }, 3, 'wait');
  await pay({ path: join(dir, 'redis.sock'), ...HOSTILE }, 3, 'wait');
  // An open one stays open.
  await pay({ port, maxRetriesPerRequest: null }, 0, 'ready');
});
