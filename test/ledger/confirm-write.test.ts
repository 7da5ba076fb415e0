import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { WriteConfirmer } from '../../src/ledger/confirm-write.js';
import { KnownReplicas } from '../../src/ledger/redis-durability.js';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { startMasterWithReplica, type MasterWithReplica } from '../support/replicated-redis.js';
import { newPlatformId } from '../support/account.js';
import { nextBegin, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';

const SHORT = /only 0 of 1 replicas acknowledged it within 1000 ms/;

let servers: MasterWithReplica;
let redis: RedisClient;
let connection: LedgerConnection;
let doubts: number;
let payouts: PayoutLedger;

beforeAll(async () => {
  servers = await startMasterWithReplica();
});
afterAll(async () => servers.close());

beforeEach(async () => {
  await servers.untilReplica('online');
  redis = connectRedis(servers.master.url, 'commands');
  connection = connectLedger(redis, newPlatformId());
  doubts = 0;
  payouts = new PayoutLedger(connection, confirmer());
  await payouts.enqueue([aPayout('p')]);
});
afterEach(async () => {
  servers.link.heal();
  await closeRedis(redis);
});

function confirmer(fixed?: number): WriteConfirmer {
  const known = new KnownReplicas(redis, fixed);
  return new WriteConfirmer({ redis, known, needsDisk: true, onDoubt: () => (doubts += 1) });
}

/** From now on the replica hears nothing, and the master does not know. */
async function silenceReplica(): Promise<void> {
  servers.link.silence(['requests', 'replies']);
  // A write of this connection that does not reach the replica, also where the change that follows writes nothing.
  await redis.set(`${connection.keys.prefix}:written`, 'since');
}

describe('a begin', () => {
  it('counts once the replica has it, and not while the replica hears nothing', async () => {
    await payouts.enqueue([aPayout('q')]);
    const ledger = new RedisSenderLedger(connection, confirmer());
    const lease = await takeLease(ledger, 'one');
    const begun = await nextBegin(ledger, lease, 'p');
    expect(await ledger.beginSend(begun)).toEqual({ kind: 'begun', sendCount: 1 });
    await ledger.revertSend({ payoutId: 'p', attempt: begun.attempt, token: begun.token }, 'only a test');
    await silenceReplica();
    await expect(ledger.beginSend(await nextBegin(ledger, lease, 'q'))).rejects.toThrow(SHORT);
    expect(doubts).toBe(1);
  });

  it('waits for as many replicas as the operator says', async () => {
    const begin = async (fixed: number, payoutId: string): Promise<unknown> => {
      const other = connectLedger(redis, newPlatformId());
      await new PayoutLedger(other).enqueue([aPayout(payoutId)]);
      const ledger = new RedisSenderLedger(other, confirmer(fixed));
      return ledger.beginSend(await nextBegin(ledger, await takeLease(ledger, 'one'), payoutId));
    };
    await expect(begin(2, 'a')).rejects.toThrow(/only 1 of 2 replicas/);
    await silenceReplica();
    expect(await begin(0, 'b')).toMatchObject({ kind: 'begun' });
  });
});

describe('a change that an operator or the application makes', () => {
  const changes: [string, () => Promise<unknown>][] = [
    ['a cancellation', async () => payouts.change({ payoutId: 'p', from: 'queued', to: 'cancelled' })],
    ['a pause', async () => payouts.pause('ann', 'lunch')],
    ['a resumption', async () => payouts.resume('ann', 'back')],
  ];

  it.each(changes)('is acknowledged once the replica has it: %s', async (_, change) => {
    await change();
    await silenceReplica();
    await expect(change()).rejects.toThrow(SHORT);
    await expect(change()).rejects.toThrow(/may or may not be kept; asking again is safe$/);
  });

  it('can be asked for again until the replica has it, and happens once', async () => {
    await silenceReplica();
    await expect(changes[0]?.[1]()).rejects.toBeInstanceOf(RedisUnavailableError);
    await expect(payouts.pause('ann', 'lunch')).rejects.toBeInstanceOf(RedisUnavailableError);
    servers.link.heal();
    await expect(changes[0]?.[1]()).rejects.toThrow('Allowed from cancelled: none, it is final');
    expect(await payouts.pause('ann', 'lunch')).toBe(false);
    expect((await payouts.get('p'))?.history.map(({ to }) => to)).toEqual(['queued', 'cancelled']);
  });

  it('goes the same way through a producer', async () => {
    const producer = new PayoutProducer({ platformId: connection.platformId, redisUrl: servers.master.url });
    await producer.enqueue({ payoutId: 'q', paymentId: 1, amount: '1', addressTo: 'wallet-1' });
    expect(await producer.cancel('q')).toMatchObject({ state: 'cancelled' });
    await silenceReplica();
    await expect(producer.cancel('p')).rejects.toThrow(SHORT);
    // Accepting is not waited for: the application asks again with the same payoutId.
    expect(await producer.enqueue({ payoutId: 'r', paymentId: 1, amount: '1', addressTo: 'wallet-1' })).toMatchObject({
      created: true,
    });
    await producer.close();
  });
});

describe('a replica that was seen', () => {
  it('is still waited for after the master has forgotten it, also on a new connection of the same process', async () => {
    await payouts.pause('ann', 'seen');
    servers.link.cut();
    await servers.untilReplica('gone');
    await expect(payouts.resume('ann', 'back')).rejects.toThrow(SHORT);
    const ready = new Promise((resolve) => redis.once('ready', resolve));
    if ('stream' in redis) redis.stream.destroy();
    await ready;
    await expect(payouts.resume('ann', 'back')).rejects.toThrow(SHORT);
    // What an operator does who says that the replica is gone for good: a process that starts now has not seen it.
    expect(await new PayoutLedger(connection, confirmer()).resume('ann', 'back')).toBe(false);
  });
});

describe('a connection that changes between a write and its confirmation', () => {
  it('confirms nothing: WAIT speaks of the writes of its own connection', async () => {
    const write = await confirmer().prepare(connection.keys.ledger);
    await connection.run('pause-account', [1, 'ann', 'lunch']);
    const ready = new Promise((resolve) => redis.once('ready', resolve));
    if ('stream' in redis) redis.stream.destroy();
    await ready;
    await expect(write.confirm()).rejects.toThrow(/the connection changed meanwhile/);
  });
});
