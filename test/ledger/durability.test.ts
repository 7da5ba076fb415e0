import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/errors.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import type { BeginSend } from '../../src/ledger/sender-ledger.js';
import type { RedisClient } from '../../src/redis.js';
import { NO_BREAKER, nextBegin, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** A ledger whose server answers WAITAOF as a test says: on so many servers, this one and replicas, it is on disk. */
function ledgerWith(synced: readonly [here: number, replicas: number]): {
  ledger: RedisSenderLedger;
  asked: unknown[];
} {
  const asked: unknown[] = [];
  const pipeline = {
    exists: () => pipeline,
    call(...command: unknown[]) {
      asked.push(command);
      return pipeline;
    },
    exec: async () =>
      Promise.resolve([
        [null, 1],
        [null, synced],
      ]),
  };
  const redis = { pipeline: () => pipeline } as unknown as RedisClient;
  return { ledger: new RedisSenderLedger({ ...account.connection, redis }, 'waitaof'), asked };
}

describe('a begin whose server is asked with WAITAOF', () => {
  let request: BeginSend;
  beforeEach(async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const ledger = new RedisSenderLedger(account.connection, 'reply');
    request = await nextBegin(ledger, await takeLease(ledger, 'one'), 'p');
  });

  it('has begun once the server itself has it on disk', async () => {
    const { ledger, asked } = ledgerWith([1, 0]);
    expect(await ledger.beginSend(request)).toEqual({ kind: 'begun', sends: 1 });
    expect(asked).toEqual([['WAITAOF', 1, 0, 1_000]]);
  });

  it('fails where only replicas have it, so that nothing is written', async () => {
    const { ledger } = ledgerWith([0, 2]);
    await expect(ledger.beginSend(request)).rejects.toBeInstanceOf(RedisUnavailableError);
  });

  it('does not ask for what it refused', async () => {
    const { ledger, asked } = ledgerWith([1, 0]);
    expect(await ledger.beginSend({ ...request, sends: 7 })).toEqual({ kind: 'sends_differ', sends: 0 });
    expect(asked).toEqual([]);
  });
});

describe('an unknown outcome', () => {
  it('has no txhash in the record', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const ledger = new RedisSenderLedger(account.connection, 'reply');
    expect((await ledger.readSender()).unanswered).toBe(false);
    const lease = await takeLease(ledger, 'one');
    await ledger.beginSend(await nextBegin(ledger, lease, 'p'));
    await ledger.finishSend(
      { payoutId: 'p', attempt: 1, epoch: lease.epoch },
      { kind: 'unknown', reason: 'silence' },
      NO_BREAKER,
    );
    expect(await account.ledger.get('p')).not.toHaveProperty('txhash');
  });
});
