import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { adoptSends } from '../../src/ledger/adopt-ledger.js';
import { FINAL_STATES, PAYOUT_STATES, type PayoutState } from '../../src/ledger/states.js';
import { silentLogger } from '../../src/base/logger.js';
import { applyRetention, removeSome } from '../../src/worker/retention.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { testRedisUrl } from '../support/account.js';

const DAY_MS = 24 * 60 * 60 * 1000;

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** One payout in each state, named for it. */
async function makeOneInEachState(): Promise<void> {
  await account.ledger.enqueue(PAYOUT_STATES.map((state) => aPayout(state, { batch: 'b' })));
  const move = async (payoutId: string, from: PayoutState, to: PayoutState, txhash?: string): Promise<void> => {
    await account.ledger.change({ payoutId, from, to, ...(txhash === undefined ? {} : { txhash }) });
  };
  await move('cancelled', 'queued', 'cancelled');
  for (const payoutId of ['sending', 'in_progress', 'completed', 'failed', 'rejected', 'unknown'] as const) {
    await move(payoutId, 'queued', 'sending');
    if (payoutId === 'rejected' || payoutId === 'unknown') await move(payoutId, 'sending', payoutId);
  }
  for (const payoutId of ['in_progress', 'completed', 'failed'] as const) {
    await move(payoutId, 'sending', 'in_progress', `hash-${payoutId}`);
    if (payoutId !== 'in_progress') await move(payoutId, 'in_progress', payoutId);
  }
}

async function findPayouts(): Promise<string[]> {
  const found = await Promise.all(PAYOUT_STATES.map(async (state) => account.ledger.get(state)));
  return found.flatMap((payout) => (payout === undefined ? [] : [payout.payoutId]));
}

/** They have none of their own here. */
const statistics = {
  countRemoval: async (_: PayoutState, take: () => Promise<readonly unknown[]>) => (await take()).length,
};

const remove = async () => removeSome({ connection: account.connection, retentionDays: 2, statistics });

describe('removing old payouts', () => {
  it('takes final ones that are older than the retention, and nothing else', async () => {
    await makeOneInEachState();
    account.clock.advance(2 * DAY_MS);
    expect((await remove()).payouts).toBe(0);
    account.clock.advance(1);
    expect((await remove()).payouts).toBe(3);
    expect(await findPayouts()).toEqual(PAYOUT_STATES.filter((state) => !FINAL_STATES.includes(state)));
    expect((await remove()).payouts).toBe(0);
  });

  it('reckons from the last change', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    account.clock.advance(3 * DAY_MS);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect((await remove()).payouts).toBe(0);
  });

  it('leaves of a payout its id and its state, and nothing else', async () => {
    await makeOneInEachState();
    account.clock.advance(3 * DAY_MS);
    await remove();
    expect(await account.ledger.findByTxhash('hash-completed')).toBeUndefined();
    expect(await account.ledger.findByTxhash('hash-in_progress')).toBe('in_progress');
    const { keys } = account.connection;
    expect(await account.redis.zrange(keys.batch('b'), '0', '-1')).not.toContain('completed');
    expect(await account.redis.zcard(keys.state('completed'))).toBe(0);
    const left = await account.redis.keys(`${keys.prefix}:*completed*`);
    expect(left).toEqual([]);
    const buckets = await account.redis.keys(`${keys.prefix}:removed:*`);
    const ids = await Promise.all(buckets.map(async (bucket) => account.redis.hgetall(bucket)));
    expect(Object.assign({}, ...ids)).toEqual({ completed: 'completed', failed: 'failed', cancelled: 'cancelled' });
  });

  it('never accepts a removed id again, and says why', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    account.clock.advance(3 * DAY_MS);
    await remove();
    const producer = new PayoutProducer({ platformId: account.platformId, redisUrl: testRedisUrl() });
    try {
      const payout = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
      await expect(producer.enqueue(payout)).rejects.toThrow(/p was cancelled and has been removed.*never paid again/);
      expect(await producer.enqueueMany([payout, { ...payout, payoutId: 'q' }])).toMatchObject({
        results: [{ kind: 'conflict', payoutId: 'p', state: 'cancelled', removed: true }, { kind: 'created' }],
        created: 1,
        conflicts: 1,
      });
    } finally {
      await producer.close();
    }
  });

  it('never accepts a removed id again, also where someone has deleted the key `ledger`', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    account.clock.advance(3 * DAY_MS);
    await remove();
    await account.redis.del(account.connection.keys.ledger);
    expect(await account.ledger.enqueue([aPayout('p'), aPayout('q')])).toMatchObject([
      { kind: 'removed', payoutId: 'p', state: 'cancelled' },
      { kind: 'created' },
    ]);
  });

  it('is no reason for an adopted ledger to think that the payout was forgotten', async () => {
    await makeOneInEachState();
    account.clock.advance(3 * DAY_MS);
    await remove();
    const request = { paymentId: 7, amount: '1', addressTo: 'w' };
    const sends = ['completed', 'never-seen'].map((payoutId) => ({ payoutId, attempt: 1, token: 't', request }));
    const doubt = { by: 'ann', reason: 'old copy', doubtMs: 0 };
    expect(await adoptSends(account.connection, sends, doubt)).toEqual([{ payoutId: 'never-seen', state: 'unknown' }]);
  });
});

describe('the loop', () => {
  it('continues step by step until nothing is left to remove', async () => {
    const payoutIds = Array.from({ length: 150 }, (_, index) => `p-${index}`);
    await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    for (const payoutId of payoutIds) await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
    account.clock.advance(3 * DAY_MS);
    const stop = new AbortController();
    const said: object[] = [];
    const note = (fields: object): void => {
      said.push(fields);
      stop.abort();
    };
    const logger = { ...silentLogger, info: note };
    await applyRetention({ connection: account.connection, retentionDays: 2, statistics, logger }, stop.signal);
    expect(said).toEqual([{ removed: 150 }]);
  });

  it('is not held up by a payout that cannot be removed', async () => {
    const payoutIds = Array.from({ length: 150 }, (_, index) => `p-${index}`);
    await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    for (const payoutId of payoutIds) await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
    account.clock.advance(3 * DAY_MS);
    await account.redis.hset(account.connection.keys.payout('p-0'), 'state', 'queued');
    const steps = [await remove(), await remove(), await remove(), await remove()];
    expect(steps.map(({ payouts, isFull }) => [payouts, isFull])).toEqual([
      [49, true],
      [49, true],
      [49, true],
      [2, false],
    ]);
  });

  it('rests where all that it finds is too young', async () => {
    const payoutIds = Array.from({ length: 60 }, (_, index) => `p-${index}`);
    await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
    for (const payoutId of payoutIds) {
      await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
      account.clock.advance(1);
    }
    account.clock.advance(2 * DAY_MS - 20);
    expect(await remove()).toMatchObject({ payouts: 40, isFull: false });
  });
});

describe('trimming events', () => {
  const trim = async (keep: number): Promise<number> =>
    Number(await account.connection.run('trim-events', [keep, 1_000]));
  const length = 1_000;

  beforeEach(async () => {
    await account.ledger.enqueue(Array.from({ length }, (_, index) => aPayout(`p-${index}`)));
  });

  const count = async (): Promise<number> => account.redis.xlen(account.connection.keys.events);

  it('keeps the newest ones, and about as many as it should', async () => {
    expect(await trim(length)).toBe(0);
    expect(await trim(250)).toBeGreaterThan(600);
    expect(await count()).toBeGreaterThanOrEqual(250);
    const [newest] = await account.redis.xrevrange(account.connection.keys.events, '+', '-', 'COUNT', 1);
    expect(newest?.[1]).toContain(`p-${length - 1}`);
  });

  it('never takes what a group has yet to read or to acknowledge', async () => {
    const read = async (group: string): Promise<string[]> => {
      const reply = await account.connection.run('read-group-events', [group, 'one', 1_000, 100]);
      return (reply as [string, number, [string, string[]][]])[2].map(([eventId]) => eventId);
    };
    const acknowledge = async (eventIds: readonly string[]): Promise<void> => {
      for (const eventId of eventIds) await account.connection.run('ack-group-event', ['slow', 'one', eventId]);
    };
    for (let page = 0; page < 9; page += 1)
      await account.redis.xack(account.connection.keys.events, 'fast', ...(await read('fast')));
    const first = await read('slow');
    expect(await trim(10)).toBe(0);
    await acknowledge(first);
    await read('slow');
    // Redis drops whole blocks of its stream only.
    const dropped = await trim(10);
    expect(dropped).toBeGreaterThan(50);
    expect(dropped).toBeLessThanOrEqual(100);
    const [oldest] = await account.redis.xrange(account.connection.keys.events, '-', '+', 'COUNT', 1);
    expect(oldest?.[1]).toContain(`p-${dropped}`);
    expect(await count()).toBe(length - dropped);
  });

  it('never takes what a group that has acknowledged all it was given has yet to read', async () => {
    const reply = await account.connection.run('read-group-events', ['slow', 'one', 1_000, 100]);
    for (const [eventId] of (reply as [string, number, [string][]])[2]) {
      await account.connection.run('ack-group-event', ['slow', 'one', eventId]);
    }
    const dropped = await trim(10);
    expect(dropped).toBeGreaterThan(50);
    expect(dropped).toBeLessThanOrEqual(100);
    expect(await count()).toBe(length - dropped);
  });
});
