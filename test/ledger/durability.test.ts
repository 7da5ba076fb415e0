import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { WriteConfirmer } from '../../src/ledger/confirm-write.js';
import { KnownReplicas } from '../../src/ledger/redis-durability.js';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import type { BeginSend } from '../../src/ledger/sender-ledger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { startWaitaofRedis, type WaitaofRedis } from '../support/waitaof-redis.js';
import { begin, NO_BREAKER, nextBegin, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount } from './support/test-account.js';

const ASKED = ['1', '0', '1000'];

let server: WaitaofRedis;
let redis: RedisClient;
let writes: WriteConfirmer;
let payouts: PayoutLedger;
let ledger: RedisSenderLedger;

beforeAll(async () => {
  server = await startWaitaofRedis();
});
afterAll(async () => server.close());

beforeEach(() => {
  redis = connectRedis(server.url, 'commands');
  writes = new WriteConfirmer({ redis, known: new KnownReplicas(redis), needsDisk: true });
  const connection = connectLedger(redis, newPlatformId());
  payouts = new PayoutLedger(connection, writes);
  ledger = new RedisSenderLedger(connection, writes);
  server.reply = [1, 0];
});
afterEach(async () => closeRedis(redis));

/** The questions that `work` led to, without that of the check before the first write. */
async function askedDuring(work: () => Promise<unknown>): Promise<string[][]> {
  await writes.prepare('any');
  const before = server.asked.length;
  await work();
  return server.asked.slice(before);
}

describe('a begin whose server is asked with WAITAOF', () => {
  let request: BeginSend;
  beforeEach(async () => {
    await payouts.enqueue([aPayout('p')]);
    request = await nextBegin(ledger, await takeLease(ledger, 'one'), 'p');
  });

  it('has begun once the server itself has it on disk', async () => {
    expect(
      await askedDuring(async () => {
        expect(await ledger.beginSend(request)).toEqual({ kind: 'begun', sendCount: 1 });
      }),
    ).toEqual([ASKED]);
  });

  it('fails where only replicas have it, so that nothing is written', async () => {
    await askedDuring(async () => {
      server.reply = [0, 2];
      await expect(ledger.beginSend(request)).rejects.toThrow(/not on disk within 1000 ms.*asking again is safe/);
    });
  });

  it('fails where the disk was late before', async () => {
    server.reply = [0, 0];
    await expect(ledger.beginSend(request)).rejects.toBeInstanceOf(RedisUnavailableError);
  });

  it('does not ask for what it refused', async () => {
    expect(
      await askedDuring(async () => {
        expect(await ledger.beginSend({ ...request, sendCount: 7 })).toEqual({
          kind: 'sends_differ',
          sendCount: 0,
          last: '',
        });
      }),
    ).toEqual([]);
  });
});

describe('a change whose server is asked with WAITAOF', () => {
  beforeEach(async () => payouts.enqueue([aPayout('p')]));

  it.each([
    ['a cancellation', async () => payouts.change({ payoutId: 'p', from: 'queued', to: 'cancelled' })],
    ['a pause', async () => payouts.pause('ann', 'lunch')],
    ['a resumption that finds nothing to resume', async () => payouts.resume('ann', 'back')],
  ])('is on disk before it is acknowledged: %s', async (_, change) => {
    expect(await askedDuring(change)).toEqual([ASKED]);
    await askedDuring(async () => {
      server.reply = [0, 0];
      await expect(change()).rejects.toThrow(/may or may not be kept; asking again is safe$/);
    });
  });

  it('is told of a conflict only once what it conflicts with is on disk', async () => {
    const cancel = async (): Promise<void> => payouts.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    await askedDuring(async () => {
      server.reply = [0, 0];
      await expect(cancel()).rejects.toBeInstanceOf(RedisUnavailableError);
    });
    server.reply = [1, 0];
    await askedDuring(async () => {
      server.reply = [0, 0];
      await expect(cancel()).rejects.toBeInstanceOf(RedisUnavailableError);
    });
    server.reply = [1, 0];
    await expect(cancel()).rejects.toThrow('Allowed from cancelled: none, it is final');
    expect((await payouts.get('p'))?.history).toHaveLength(2);
  });

  it('is a pause that stands when it is asked for again', async () => {
    await askedDuring(async () => {
      server.reply = [0, 0];
      await expect(payouts.pause('ann', 'lunch')).rejects.toBeInstanceOf(RedisUnavailableError);
    });
    server.reply = [1, 0];
    expect(await payouts.pause('ann', 'lunch')).toBe(false);
  });

  it('leaves accepted payouts alone: they are not waited for', async () => {
    expect(await askedDuring(async () => payouts.enqueue([aPayout('q')]))).toEqual([]);
  });
});

describe('changes that are made at the same time', () => {
  it('share their waits', async () => {
    const payoutIds = Array.from({ length: 30 }, (_, index) => `p-${index}`);
    await payouts.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    const asked = await askedDuring(async () =>
      Promise.all(payoutIds.map(async (payoutId) => payouts.change({ payoutId, from: 'queued', to: 'cancelled' }))),
    );
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan(10);
  });
});

describe('a disk that is late again and again', () => {
  it('lets no change be acknowledged, however often it is asked for', async () => {
    server.reply = [0, 0];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(payouts.pause('ann', 'lunch')).rejects.toBeInstanceOf(RedisUnavailableError);
    }
  });
});

describe('the check of a server that is asked with WAITAOF', () => {
  const check = async (): Promise<number> => {
    if (!(redis instanceof Redis)) throw new Error('this is one server');
    return (await writes.check(redis)).problems.length;
  };

  it('asks it for its disk once, and again for as long as that is late', async () => {
    server.reply = [0, 0];
    const before = server.asked.length;
    expect([await check(), await check()]).toEqual([1, 1]);
    server.reply = [1, 0];
    expect([await check(), await check(), await check()]).toEqual([0, 0, 0]);
    expect(server.asked.length - before).toBe(3);
  });
});

describe('a Redis that cannot say what is on its disk', () => {
  let volatile: LocalRedis;
  let connection: LedgerConnection;
  beforeEach(async () => {
    volatile = await startLocalRedis({ args: ['--appendonly', 'no'] });
    connection = connectLedger(connectRedis(volatile.url, 'commands'), newPlatformId());
  });
  afterEach(async () => {
    await closeRedis(connection.redis);
    await volatile.stop();
  });

  const confirmer = (needsDisk: boolean): WriteConfirmer =>
    new WriteConfirmer({ redis: connection.redis, known: new KnownReplicas(connection.redis), needsDisk });

  it('acknowledges changes as it always did, because nothing is sent from it', async () => {
    expect(await new PayoutLedger(connection, confirmer(false)).pause('ann', 'trial')).toBe(true);
  });

  it('begins no send', async () => {
    await new PayoutLedger(connection).enqueue([aPayout('p')]);
    const strict = new RedisSenderLedger(connection, confirmer(true));
    const begin = strict.beginSend(await nextBegin(strict, await takeLease(strict, 'one'), 'p'));
    await expect(begin).rejects.toThrow(/not on disk/);
  });
});

describe('an unknown outcome', () => {
  it('has no txhash in the record', async () => {
    const account = openTestAccount();
    await account.ledger.enqueue([aPayout('p')]);
    const plain = new RedisSenderLedger(account.connection, 'reply');
    expect((await plain.readSender()).awaitingAnswer).toBe(false);
    const attempt = await begin(plain, await takeLease(plain, 'one'), 'p');
    await plain.finishSend(attempt, { kind: 'unknown', reason: 'silence' }, NO_BREAKER, 0);
    expect(await account.ledger.get('p')).not.toHaveProperty('txhash');
    await account.close();
  });
});
