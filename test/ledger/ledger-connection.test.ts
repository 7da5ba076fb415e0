import { expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { SHARED_KEYS } from '../../src/ledger/keys.js';
import { ask, pipelined } from '../../src/ledger/ledger-connection.js';
import { MemberRegistry, type MemberReport } from '../../src/ledger/member-registry.js';
import { peekSenderView, readSenderView } from '../../src/ledger/sender-view.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { afterTest } from '../worker/support/close-after-test.js';
import { openTestAccount } from './support/test-account.js';
import { connection, keys, redis, useAccount } from './support/use-account.js';

useAccount();

it('the ledger gets one id, which stays, and none from who only looks', async () => {
  expect((await peekSenderView(connection)).ledgerId).toBe('none');
  expect(await redis.hget(keys.ledger, 'id')).toBeNull();
  const { ledgerId, pausedReason } = await readSenderView(connection);
  expect(ledgerId).toMatch(/^[0-9a-f-]{36}$/);
  expect(pausedReason).toBeUndefined();
  expect((await readSenderView(connection)).ledgerId).toBe(ledgerId);
  expect((await peekSenderView(connection)).ledgerId).toBe(ledgerId);
});

it('a pipeline gives the replies in order, and fails where one of its commands does', async () => {
  const { ledger } = keys;
  expect(await pipelined(connection, (line) => line.hset(ledger, 'a', '1').hget(ledger, 'a'))).toEqual([1, '1']);
  const failing = pipelined(connection, (line) => line.hgetall(ledger).zcard(ledger));
  await expect(failing).rejects.toThrow('WRONGTYPE');
});

it('a pipeline of one command is that command, and fails as it does; of none it asks nothing', async () => {
  const { ledger } = keys;
  const made = jest.spyOn(redis as Redis, 'pipeline');
  await redis.hset(ledger, 'a', '1');
  expect(await pipelined(connection, (line) => line.hgetall(ledger))).toEqual([{ a: '1' }]);
  await expect(pipelined(connection, (line) => line.zcard(ledger))).rejects.toThrow('WRONGTYPE');
  expect(made).not.toHaveBeenCalled();
  expect(await pipelined(connection, () => undefined)).toEqual([]);
});

it('a Redis that is unavailable is told as such by a command, a pipeline and a script', async () => {
  const { redis, connection } = openTestAccount();
  redis.disconnect();
  for (const asked of [
    ask(connection.redis.get('x')),
    pipelined(connection, (pipeline) => pipeline.get('x')),
    connection.run('renew-lease', { owner: 'one', epoch: 1 }),
  ]) {
    await expect(asked).rejects.toBeInstanceOf(RedisUnavailableError);
  }
});

it('a script that fails by itself is told with its name and its words', async () => {
  await expect(connection.run('remove-payouts', { state: 'queued', before: 1 })).rejects.toThrow(
    /^The ledger script remove-payouts failed: .*queued is not final/,
  );
  await redis.set(keys.ledger, 'not a hash');
  const failed = await connection
    .run('pause-account', { at: 1, by: 'ann', reason: 'why' })
    .catch((error: unknown) => error);
  expect(failed).not.toBeInstanceOf(RedisUnavailableError);
  expect((failed as Error).message).toMatch(
    /^What the ledger script pause-account reads in Redis cannot be read: WRONGTYPE .*user_script/,
  );
});

it('the registry of processes lists their heartbeats and reports, and forgets', async () => {
  const server = await startLocalRedis();
  const redis = connectRedis(server.url, 'commands');
  afterTest(async () => {
    await closeRedis(redis);
    await server.stop();
  });
  const [one, two] = [new MemberRegistry(redis, 'one'), new MemberRegistry(redis, 'two')];
  const heartbeats = new Map([['one', '1 0']]);
  expect(await one.exchange({ count: 1, version: 0 })).toEqual({ heartbeats, wasListed: false });
  await two.exchange({ count: 7, version: 3 });
  heartbeats.set('one', '2 0').set('two', '7 3');
  expect(await one.exchange({ count: 2, version: 0 })).toEqual({ heartbeats, wasListed: true });
  await redis.hdel(SHARED_KEYS.members, 'one');
  expect((await one.exchange({ count: 3, version: 0 })).wasListed).toBe(false);

  const report: MemberReport = { version: 3, folder: 'f', accounts: [1, 2], unfit: [2], claims: [1], held: [] };
  await one.report(report);
  await redis.hset(SHARED_KEYS.memberReports, { a: '{"version":"x"}', b: 'no JSON' });
  expect(await one.readReports(['one', 'a', 'b', 'missing'])).toEqual(new Map([['one', report]]));

  await one.leave();
  expect((await two.exchange({ count: 8, version: 3 })).heartbeats.get('one')).toBeUndefined();
  expect(await two.readReports(['one'])).toEqual(new Map());
  await two.remove(['one']);
  expect(await redis.hkeys(SHARED_KEYS.members)).toEqual(['two']);
  // The rights that are documented for the Redis user.
  for (const key of Object.values(SHARED_KEYS)) expect(key).toMatch(/^\{payouts:/);
});
