import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { ask, pipelined } from '../../src/ledger/ledger-connection.js';
import { peekSenderView, readSenderView } from '../../src/ledger/sender-view.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

describe('the ledger', () => {
  it('gets one id, which stays', async () => {
    const { ledgerId, pausedReason } = await readSenderView(account.connection);
    expect(ledgerId).toMatch(/^[0-9a-f-]{36}$/);
    expect(pausedReason).toBeUndefined();
    expect((await readSenderView(account.connection)).ledgerId).toBe(ledgerId);
    expect((await peekSenderView(account.connection)).ledgerId).toBe(ledgerId);
  });

  it('gets none from who only looks', async () => {
    expect((await peekSenderView(account.connection)).ledgerId).toBe('none');
    expect(await account.redis.hget(account.connection.keys.ledger, 'id')).toBeNull();
  });
});

describe('a pipeline', () => {
  it('gives the replies in order', async () => {
    const { ledger } = account.connection.keys;
    expect(
      await pipelined(account.connection, (pipeline) => pipeline.hset(ledger, 'a', '1').hget(ledger, 'a')),
    ).toEqual([1, '1']);
  });

  it('of one command is that command, and fails as it does', async () => {
    const { ledger } = account.connection.keys;
    const made = jest.spyOn(account.redis as Redis, 'pipeline');
    await account.redis.hset(ledger, 'a', '1');
    expect(await pipelined(account.connection, (pipeline) => pipeline.hgetall(ledger))).toEqual([{ a: '1' }]);
    await expect(pipelined(account.connection, (pipeline) => pipeline.zcard(ledger))).rejects.toThrow('WRONGTYPE');
    expect(made).not.toHaveBeenCalled();
  });

  it('of no command asks nothing', async () => {
    expect(await pipelined(account.connection, () => undefined)).toEqual([]);
  });

  it('fails where one of its commands does', async () => {
    const { ledger } = account.connection.keys;
    await account.redis.hset(ledger, 'a', '1');
    await expect(pipelined(account.connection, (pipeline) => pipeline.hgetall(ledger).zcard(ledger))).rejects.toThrow(
      'WRONGTYPE',
    );
  });
});

describe('a Redis that is unavailable', () => {
  it('is told as such by a command, a pipeline and a script', async () => {
    const unavailable = openTestAccount();
    unavailable.redis.disconnect();
    const { connection } = unavailable;
    for (const asked of [
      ask(connection.redis.get('x')),
      pipelined(connection, (pipeline) => pipeline.get('x')),
      connection.run('renew-lease', ['one', 1]),
    ]) {
      await expect(asked).rejects.toBeInstanceOf(RedisUnavailableError);
    }
  });
});

describe('a script that fails by itself', () => {
  it('is told with its name and the words of Redis, and not as Redis unavailable', async () => {
    const { connection, redis } = account;
    await redis.set(connection.keys.ledger, 'not a hash');
    const failed = await connection.run('pause-account', [1, 'ann', 'why']).catch((error: unknown) => error);
    expect(failed).not.toBeInstanceOf(RedisUnavailableError);
    expect((failed as Error).message).toMatch(/^The ledger script pause-account failed: WRONGTYPE .*user_script/);
  });

  it('also where the script itself says so', async () => {
    const { connection } = account;
    await expect(connection.run('remove-payouts', ['queued', 1, 10])).rejects.toThrow(
      /^The ledger script remove-payouts failed: .*queued is not final/,
    );
  });
});
