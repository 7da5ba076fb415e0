import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { SharedWait, WriteConfirmer } from '../../src/ledger/confirm-write.js';
import { KnownReplicas } from '../../src/ledger/known-replicas.js';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { newPlatformId } from '../support/account.js';
import { startMasterWithReplica, type MasterWithReplica } from '../support/replicated-redis.js';
import { startWaitaofRedis, type WaitaofRedis } from '../support/waitaof-redis.js';
import { afterTest } from '../worker/support/close-after-test.js';
import { aPayout, names, nextBegin, takeLease } from './support/use-account.js';

let redis: RedisClient;
let connection: LedgerConnection;
let payouts: PayoutLedger;
let unconfirmed: number;

function confirmer(fixed?: number, needsDisk = true): WriteConfirmer {
  const known = new KnownReplicas(redis, fixed);
  return new WriteConfirmer({ redis, known, needsDisk, onUnconfirmed: () => (unconfirmed += 1) });
}

async function connect(url: string): Promise<WriteConfirmer> {
  redis = connectRedis(url, 'commands');
  connection = connectLedger(redis, newPlatformId());
  unconfirmed = 0;
  const writes = confirmer();
  payouts = new PayoutLedger(connection, writes);
  await new PayoutLedger(connection).enqueue([aPayout('p')]);
  return writes;
}
afterEach(async () => closeRedis(redis));

async function toBegin(writes: WriteConfirmer, payoutId = 'p', on = connection) {
  const ledger = new RedisSenderLedger(on, writes);
  const asked = await nextBegin(ledger, await takeLease(ledger, 'one'), payoutId);
  return { ledger, asked, begin: async () => ledger.beginSend(asked) };
}

const cancel = async () => payouts.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
const pause = async () => payouts.pause('ann', 'lunch');
const resume = async () => payouts.resume('ann', 'back');
const CHANGES: [string, () => Promise<unknown>][] = [
  ['a cancellation', cancel],
  ['a pause', pause],
  ['a resumption that finds nothing to resume', resume],
];
const SAFE_TO_ASK = /may or may not be kept; asking again is safe$/;

describe('with a server that is asked with WAITAOF', () => {
  let server: WaitaofRedis;
  let writes: WriteConfirmer;
  beforeAll(async () => {
    server = await startWaitaofRedis();
  });
  afterAll(async () => server.close());
  beforeEach(async () => {
    server.reply = [1, 0];
    writes = await connect(server.url);
  });

  /** The questions that `work` led to, without that of the check before the first write. */
  async function askedDuring(work: () => Promise<unknown>): Promise<string[][]> {
    await writes.prepare(connection);
    const before = server.asked.length;
    await work();
    return server.asked.slice(before);
  }

  async function whileLate(work: () => Promise<unknown>) {
    await writes.prepare(connection);
    server.reply = [0, 0];
    await work();
    server.reply = [1, 0];
  }

  it('a send has begun once the server itself has it on disk', async () => {
    const { begin } = await toBegin(writes);
    expect(await askedDuring(begin)).toEqual([['1', '0', '1000']]);
    expect((await payouts.get('p'))?.state).toBe('sending');
  });

  it.each<[string, [number, number], RegExp]>([
    ['only replicas have it', [0, 2], /not on disk within 1000 ms.*asking again is safe/],
    ['the disk was late before', [0, 0], /disk/],
  ])('a send does not begin where %s', async (_, reply, reason) => {
    const { begin } = await toBegin(writes);
    if (reply[1] > 0) await writes.prepare(connection);
    server.reply = reply;
    const begun = begin();
    await expect(begun).rejects.toBeInstanceOf(RedisUnavailableError);
    await expect(begun).rejects.toThrow(reason);
  });

  it('nothing is asked for a send that was refused, nor for payouts that are accepted', async () => {
    const { ledger, asked } = await toBegin(writes);
    const questions = await askedDuring(async () => {
      expect(await ledger.beginSend({ ...asked, sendCount: 7 })).toMatchObject({ kind: 'sends_differ' });
      await payouts.enqueue([aPayout('q')]);
    });
    expect(questions).toEqual([]);
  });

  it.each(CHANGES)('%s is on disk before it is acknowledged', async (_, change) => {
    expect(await askedDuring(change)).toEqual([['1', '0', '1000']]);
    await whileLate(async () => expect(change()).rejects.toThrow(SAFE_TO_ASK));
  });

  it('a conflict is told only once what it conflicts with is on disk', async () => {
    for (let times = 0; times < 2; times += 1) {
      await whileLate(async () => expect(cancel()).rejects.toBeInstanceOf(RedisUnavailableError));
    }
    await expect(cancel()).rejects.toThrow('Allowed from cancelled: none, it is final');
    expect((await payouts.get('p'))?.history).toHaveLength(2);
    await whileLate(async () => expect(pause()).rejects.toBeInstanceOf(RedisUnavailableError));
    expect(await pause()).toBe(false);
  });

  it('changes that are made at the same time share their waits', async () => {
    const payoutIds = names(30);
    await payouts.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    const asked = await askedDuring(async () =>
      Promise.all(payoutIds.map(async (payoutId) => payouts.change({ payoutId, from: 'queued', to: 'cancelled' }))),
    );
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan(10);
  });

  it('the check asks the server for its disk once, and again for as long as that is late', async () => {
    const check = async () => {
      if (!(redis instanceof Redis)) throw new Error('this is one server');
      return (await writes.check(redis)).problems.length;
    };
    server.reply = [0, 0];
    const before = server.asked.length;
    expect([await check(), await check()]).toEqual([1, 1]);
    server.reply = [1, 0];
    expect([await check(), await check(), await check()]).toEqual([0, 0, 0]);
    expect(server.asked.length - before).toBe(3);
  });
});

it('a Redis that cannot say what is on its disk acknowledges changes, and begins no send', async () => {
  const volatile = await startLocalRedis({ args: ['--appendonly', 'no'] });
  afterTest(async () => volatile.stop());
  await connect(volatile.url);
  const { begin } = await toBegin(confirmer());
  await expect(begin()).rejects.toThrow(/not on disk/);
  expect(await new PayoutLedger(connection, confirmer(undefined, false)).pause('ann', 'trial')).toBe(true);
});

describe('with a replica', () => {
  const SHORT = /only 0 of 1 replicas acknowledged it within 1000 ms/;
  let servers: MasterWithReplica;
  beforeAll(async () => {
    servers = await startMasterWithReplica();
  });
  afterAll(async () => servers.close());
  beforeEach(async () => {
    await servers.untilReplica('online');
    await connect(servers.master.url);
    await payouts.enqueue([aPayout('q')]);
  });
  afterEach(() => {
    servers.link.heal();
  });

  /** From now on the replica hears nothing, and the master does not know. */
  async function silenceReplica() {
    servers.link.silence(['requests', 'replies']);
    // A write of this connection that does not reach the replica, also where the change that follows writes nothing.
    await redis.set(`${connection.keys.prefix}:written`, 'since');
  }

  async function reconnect() {
    const ready = new Promise((resolve) => redis.once('ready', resolve));
    if ('stream' in redis) redis.stream.destroy();
    await ready;
  }

  it('a begin counts once the replica has it, and not while the replica hears nothing', async () => {
    const { ledger, asked, begin } = await toBegin(confirmer());
    expect(await begin()).toEqual({ kind: 'begun', sendCount: 1, acts: 0, isIndexed: true });
    await ledger.revertSend(asked, 'only a test');
    await silenceReplica();
    const next = await nextBegin(ledger, asked.lease, 'q');
    await expect(ledger.beginSend(next)).rejects.toThrow(SHORT);
    expect(unconfirmed).toBe(1);
  });

  it('a begin waits for as many replicas as the operator says', async () => {
    const begin = async (fixed: number) => {
      const other = connectLedger(redis, newPlatformId());
      await new PayoutLedger(other).enqueue([aPayout('p')]);
      return (await toBegin(confirmer(fixed), 'p', other)).begin();
    };
    await expect(begin(2)).rejects.toThrow(/only 1 of 2 replicas/);
    expect(await begin(0)).toMatchObject({ kind: 'begun' });
    await silenceReplica();
    await expect(begin(0)).rejects.toThrow(SHORT);
  });

  it('changes and accepted payouts go the same way through a producer, unless it says otherwise', async () => {
    const given = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: 'wallet-1' });
    const options = { platformId: connection.platformId, redisUrl: servers.master.url };
    const [producer, hasty] = [new PayoutProducer(options), new PayoutProducer({ ...options, confirm: false })];
    afterTest(async () => Promise.all([producer.close(), hasty.close()]));
    expect(await producer.cancel('q')).toMatchObject({ state: 'cancelled' });
    expect(await producer.enqueue(given('r'))).toMatchObject({ created: true });
    await silenceReplica();
    await expect(producer.cancel('p')).rejects.toThrow(SHORT);
    await expect(producer.enqueue(given('s'))).rejects.toThrow(SHORT);
    await expect(producer.enqueueMany([given('t')])).rejects.toThrow(SHORT);
    expect(await hasty.enqueue(given('u'))).toMatchObject({ created: true });
  });

  it('calls of one moment that accept payouts share their waits', async () => {
    const producer = new PayoutProducer({ platformId: connection.platformId, redisUrl: servers.master.url });
    afterTest(async () => producer.close());
    const given = names(200).map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: 'wallet-1' }));
    await producer.enqueue({ ...(given[0] as (typeof given)[0]), payoutId: 'first' });
    const admin = new Redis(servers.master.url);
    const countWaits = async () => Number(/cmdstat_wait:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
    const before = await countWaits();
    await Promise.all(given.map(async (payout) => producer.enqueue(payout)));
    const waits = (await countWaits()) - before;
    admin.disconnect();
    expect(waits).toBeGreaterThan(0);
    expect(waits).toBeLessThan(30);
  });

  it('one that was seen is waited for though the master forgot it, also on a new connection', async () => {
    await pause();
    servers.link.cut();
    await servers.untilReplica('gone');
    await expect(resume()).rejects.toThrow(SHORT);
    await reconnect();
    await expect(resume()).rejects.toThrow(SHORT);
    // A process that starts now knows as much.
    const later = new PayoutLedger(connection, confirmer());
    await expect(later.resume('ann', 'back')).rejects.toThrow(SHORT);
    await later.lowerReplicas({ count: 0, names: [] }, { by: 'ann', reason: 'the replica is gone for good' });
    expect(await later.resume('ann', 'back')).toBe(false);
    expect(await resume()).toBe(false);
  });

  it('a connection that changes between a write and its confirmation confirms nothing', async () => {
    const write = await confirmer().prepare(connection);
    await connection.run('pause-account', { at: 1, by: 'ann', reason: 'lunch' });
    await reconnect();
    await expect(write.confirm()).rejects.toThrow(/the connection changed meanwhile/);
  });

  it('a connection that changes during the wait confirms nothing, though its successor says that all is kept', async () => {
    // As a program's own client does by default: it asks again on the next connection, whose reply is about nothing.
    const client = new Redis(servers.master.url);
    afterTest(async () => closeRedis(client));
    const own = connectLedger(client, connection.platformId);
    const write = await new WriteConfirmer({ redis: client, known: new KnownReplicas(client) }).prepare(own);
    servers.link.silence(['requests', 'replies']);
    await own.run('pause-account', { at: 1, by: 'ann', reason: 'lunch' });
    const replies: unknown[] = [];
    const wait = client.call.bind(client) as (...args: unknown[]) => Promise<unknown>;
    client.call = async (...args: unknown[]) => {
      const asked = wait(...args);
      setTimeout(() => {
        client.stream.destroy();
        servers.link.heal();
      }, 100);
      replies.push(await asked);
      return replies.at(-1);
    };
    await expect(write.confirm()).rejects.toThrow(/the connection changed meanwhile/);
    expect(replies).toEqual([1]);
  });
});

describe('waits that are asked for at the same time', () => {
  let started: { resolve: (reply: string) => void; reject: (error: Error) => void }[];
  let wait: SharedWait<string>;
  beforeEach(() => {
    started = [];
    wait = new SharedWait(async () => new Promise((resolve, reject) => started.push({ resolve, reject })));
  });
  const settle = async () => new Promise((resolve) => setImmediate(resolve));

  it('share the one that begins after they were asked for, never one under way', async () => {
    const first = wait.join();
    expect(started).toHaveLength(1);
    const others = [wait.join(), wait.join(), wait.join()];
    await settle();
    expect(started).toHaveLength(1);
    started[0]?.resolve('one');
    expect(await first).toBe('one');
    await settle();
    expect(started).toHaveLength(2);
    const late = wait.join();
    started[1]?.resolve('two');
    expect(await Promise.all(others)).toEqual(['two', 'two', 'two']);
    await settle();
    started[2]?.resolve('three');
    expect(await late).toBe('three');
    const alone = wait.join();
    expect(started).toHaveLength(4);
    started[3]?.resolve('four');
    expect(await alone).toBe('four');
  });

  it('continue after one that failed', async () => {
    const [first, second] = [wait.join(), wait.join()];
    started[0]?.reject(new Error('no reply'));
    await expect(first).rejects.toThrow('no reply');
    await settle();
    started[1]?.resolve('two');
    expect(await second).toBe('two');
  });
});
