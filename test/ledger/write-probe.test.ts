import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { findWriteRefusal } from '../../src/ledger/redis-durability.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';

let server: LocalRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startLocalRedis();
  redis = new Redis(server.url);
});
afterEach(async () => {
  await redis.replicaof('NO', 'ONE');
  await redis.config('SET', 'maxmemory', '0');
  await redis.config('SET', 'min-replicas-to-write', '0');
});
afterAll(async () => {
  await redis.quit();
  await server.stop();
});

it('finds nothing where writes are taken, and writes nothing', async () => {
  const before = await redis.info('persistence');
  expect(await findWriteRefusal(redis)).toBeUndefined();
  expect(await redis.dbsize()).toBe(0);
  expect(sizeIn(await redis.info('persistence'))).toBe(sizeIn(before));
});

it.each([
  ['a replica', async () => redis.replicaof('127.0.0.1', await findFreePort()), 'it is a read-only replica'],
  ['a full server', async () => redis.config('SET', 'maxmemory', '1mb'), 'it is full (maxmemory)'],
  ['too few replicas', async () => redis.config('SET', 'min-replicas-to-write', '1'), 'too few of its replicas'],
])('finds %s', async (_, bringAbout, reason) => {
  await bringAbout();
  expect(await findWriteRefusal(redis)).toEqual({
    reason: expect.stringContaining(reason),
    action: expect.stringMatching(/^[A-Z].{20,}\.$/),
  });
});

it.each([
  ['a replica', async () => redis.replicaof('127.0.0.1', await findFreePort()), 'it is a read-only replica'],
  ['a full server', async () => redis.config('SET', 'maxmemory', '1mb'), 'it is full (maxmemory)'],
])('finds %s also where scripts have no flags, as in Redis 6.2', async (_, bringAbout, reason) => {
  const old = Object.create(redis) as Redis;
  old.eval = async () => Promise.reject(Object.assign(new Error('ERR Error compiling script'), { name: 'ReplyError' }));
  expect(await findWriteRefusal(old)).toBeUndefined();
  await bringAbout();
  expect(await findWriteRefusal(old)).toMatchObject({ reason });
});

function sizeIn(info: string): string | undefined {
  return /aof_current_size:(\d+)/.exec(info)?.[1];
}
