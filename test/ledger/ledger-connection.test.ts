import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/errors.js';
import { ask, pipelined, readLedger } from '../../src/ledger/ledger-connection.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

describe('the ledger', () => {
  it('gets one id, which stays', async () => {
    const { ledgerId, pausedReason } = await readLedger(account.connection);
    expect(ledgerId).toMatch(/^[0-9a-f-]{36}$/);
    expect(pausedReason).toBeUndefined();
    expect((await readLedger(account.connection)).ledgerId).toBe(ledgerId);
  });
});

describe('a pipeline', () => {
  it('gives the replies in order', async () => {
    const { ledger } = account.connection.keys;
    expect(
      await pipelined(account.connection, (pipeline) => pipeline.hset(ledger, 'a', '1').hget(ledger, 'a')),
    ).toEqual([1, '1']);
  });

  it('fails where one of its commands does', async () => {
    const { ledger } = account.connection.keys;
    await account.redis.hset(ledger, 'a', '1');
    await expect(pipelined(account.connection, (pipeline) => pipeline.hgetall(ledger).zcard(ledger))).rejects.toThrow(
      'WRONGTYPE',
    );
  });
});

describe('a Redis that is away', () => {
  it('is told as such by a command, a pipeline and a script', async () => {
    const away = openTestAccount();
    away.redis.disconnect();
    const { connection } = away;
    for (const asked of [
      ask(connection.redis.get('x')),
      pipelined(connection, (pipeline) => pipeline.get('x')),
      connection.run('find-txhash', ['h']),
    ]) {
      await expect(asked).rejects.toBeInstanceOf(RedisUnavailableError);
    }
  });
});
