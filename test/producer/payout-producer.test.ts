import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { ClosedError, ConflictError, InvalidConfigError, InvalidInputError } from '../../src/base/errors.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { PayoutQueues } from '../../src/queues/payout-queues.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';

let platformId: number;
let producer: PayoutProducer;
let ledger: PayoutLedger;
let queues: PayoutQueues;

beforeEach(() => {
  platformId = newPlatformId();
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
  const redis = connectRedis(testRedisUrl(), 'commands');
  ledger = new PayoutLedger(connectLedger(redis, platformId));
  queues = new PayoutQueues(ledger.connection);
});

afterEach(async () => {
  await producer.close();
  await queues.close();
  await closeRedis(ledger.connection.redis);
});

async function jobIds(): Promise<string[]> {
  const jobs = await queues.withdraw.getJobs(['wait', 'delayed', 'prioritized']);
  return jobs.map(({ id = '' }) => id).sort();
}

describe('enqueue', () => {
  it('accepts a payout, gives it a job and leaves nothing in the outbox', async () => {
    expect(await producer.enqueue(payoutInput({ amount: '12.500' }))).toEqual({
      payoutId: 'p-1',
      state: 'queued',
      created: true,
    });
    expect(await producer.get('p-1')).toMatchObject({ payoutId: 'p-1', state: 'queued', amount: '12.5', attempt: 0 });
    await until('it has a job', async () => (await producer.stats()).withoutJob === 0);
    expect(await jobIds()).toEqual(['p-1~0']);
  });

  it('makes one payout of fifty calls at once', async () => {
    const others = Array.from({ length: 4 }, () => new PayoutProducer({ platformId, redisUrl: testRedisUrl() }));
    const calls = [producer, ...others].flatMap((caller) =>
      Array.from({ length: 10 }, async () => caller.enqueue(payoutInput())),
    );
    const results = await Promise.all(calls);
    await Promise.all(others.map((other) => other.close()));
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect((await producer.stats()).queued).toBe(1);
    await until('it has a job', async () => (await jobIds()).length > 0);
    expect(await jobIds()).toEqual(['p-1~0']);
  });

  it('refuses the same payoutId with other data, naming the fields and changing nothing', async () => {
    await producer.enqueue(payoutInput());
    const attempt = producer.enqueue(payoutInput({ amount: '13', symbol: 'USD' }));
    await expect(attempt).rejects.toBeInstanceOf(ConflictError);
    await expect(attempt).rejects.toMatchObject({ fields: ['amount', 'symbol'] });
    await expect(attempt).rejects.toThrow(
      /p-1 already exists \(queued\) with a different amount, symbol\. Use a new payoutId/,
    );
    expect(await producer.get('p-1')).toMatchObject({ amount: '12.5' });
  });

  it('names every field that breaks a rule, with rule and value', async () => {
    const attempt = producer.enqueue({ ...payoutInput({ amount: '1e3', paymentId: 0 }), extra: 1 } as never);
    await expect(attempt).rejects.toBeInstanceOf(InvalidInputError);
    await expect(attempt).rejects.toThrow(/paymentId: must be more than 0 \(got 0\)/);
    await expect(attempt).rejects.toThrow(/amount: must be a decimal string .*\(got "1e3"\)/);
    await expect(attempt).rejects.toThrow(/extra: is not a known field/);
  });

  it('heals an enqueue that ended between ledger and queue', async () => {
    await ledger.enqueue([payoutInput() as never]);
    expect(await jobIds()).toEqual([]);
    expect(await producer.enqueue(payoutInput())).toMatchObject({ created: false, state: 'queued' });
    await until('it has a job', async () => (await jobIds()).length > 0);
    expect(await jobIds()).toEqual(['p-1~0']);
  });

  it('rings for no payout that has left the queue', async () => {
    await ledger.enqueue([payoutInput() as never]);
    await ledger.change({ payoutId: 'p-1', from: 'queued', to: 'cancelled' });
    expect(await producer.enqueue(payoutInput())).toMatchObject({ created: false, state: 'cancelled' });
    await producer.close();
    expect(await jobIds()).toEqual([]);
  });
});

describe('enqueueMany', () => {
  it('keeps the order of results across its chunks and counts them', async () => {
    await producer.enqueue(payoutInput({ payoutId: 'p-7' }));
    await producer.enqueue(payoutInput({ payoutId: 'p-1500', amount: '1' }));
    // The check of the list blocks the process. If that takes five seconds, their jobs count as timed out.
    await until('both have a job', async () => (await producer.stats()).withoutJob === 0);
    const inputs = Array.from({ length: 2_500 }, (_, index) => payoutInput({ payoutId: `p-${index}` }));
    const { results, ...counts } = await producer.enqueueMany(inputs);
    expect(counts).toEqual({ created: 2_498, existing: 1, conflicts: 1 });
    expect(results.map(({ payoutId }) => payoutId)).toEqual(inputs.map(({ payoutId }) => payoutId));
    expect(results[7]).toEqual({ kind: 'existing', payoutId: 'p-7', state: 'queued', created: false });
    expect(results[1_500]).toEqual({ kind: 'conflict', payoutId: 'p-1500', state: 'queued', fields: ['amount'] });
    expect(await queues.withdraw.getWaitingCount()).toBe(2_500);
    expect((await producer.stats()).withoutJob).toBe(0);
  });

  it('enqueues nothing when one is invalid, and names it by its index', async () => {
    const inputs = [payoutInput(), payoutInput({ payoutId: 'p-2', amount: '0' }), payoutInput({ payoutId: '' })];
    const attempt = producer.enqueueMany(inputs);
    await expect(attempt).rejects.toThrow(/\[1\]\.amount: must be more than 0.*\[2\]\.payoutId/);
    expect((await producer.stats()).queued).toBe(0);
  });

  it('treats a payoutId that comes twice as two calls would', async () => {
    const inputs = [payoutInput(), payoutInput(), payoutInput({ amount: '99' })];
    const { results } = await producer.enqueueMany(inputs);
    expect(results.map(({ kind }) => kind)).toEqual(['created', 'existing', 'conflict']);
    expect(results[2]).toMatchObject({ fields: ['amount'] });
  });

  it('accepts an empty list', async () => {
    expect(await producer.enqueueMany([])).toEqual({ results: [], created: 0, existing: 0, conflicts: 0 });
  });
});

describe('cancel', () => {
  it('records who and why, and removes the job', async () => {
    await producer.enqueue(payoutInput());
    const payout = await producer.cancel('p-1', { by: 'ann', reason: 'paid by hand' });
    expect(payout.state).toBe('cancelled');
    expect(payout.history.at(-1)).toMatchObject({ from: 'queued', to: 'cancelled', by: 'ann', reason: 'paid by hand' });
    expect(await jobIds()).toEqual([]);
  });

  it('cancels what was rejected, and removes its job', async () => {
    await producer.enqueue(payoutInput());
    await ledger.change({ payoutId: 'p-1', from: 'queued', to: 'sending' });
    await ledger.change({ payoutId: 'p-1', from: 'sending', to: 'rejected', message: 'wrong address' });
    const payout = await producer.cancel('p-1', { by: 'ann', reason: 'no other address' });
    expect(payout).toMatchObject({ state: 'cancelled', message: 'wrong address' });
    expect(payout.history.at(-1)).toMatchObject({ from: 'rejected', by: 'ann', reason: 'no other address' });
    expect(await jobIds()).toEqual([]);
    expect(await producer.list({ state: 'rejected' })).toMatchObject({ payouts: [] });
  });

  it.each<PayoutState[]>([
    ['sending'],
    ['sending', 'unknown'],
    ['sending', 'in_progress'],
    ['sending', 'in_progress', 'completed'],
    ['sending', 'in_progress', 'failed'],
  ])('refuses what may have been paid: %s %s %s', async (...states) => {
    await producer.enqueue(payoutInput());
    let from: PayoutState = 'queued';
    for (const to of states) {
      await ledger.change({ payoutId: 'p-1', from, to });
      from = to;
    }
    await expect(producer.cancel('p-1')).rejects.toThrow(ConflictError);
    await expect(producer.cancel('p-1')).rejects.toThrow(
      /from \w+ to cancelled: that needs queued, held or rejected\./,
    );
    expect((await producer.get('p-1'))?.state).toBe(from);
  });

  it('is a conflict where the payout moved meanwhile, and changes nothing', async () => {
    await producer.enqueue(payoutInput());
    const cancelling = producer.cancel('p-1');
    const sending = ledger.change({ payoutId: 'p-1', from: 'queued', to: 'sending' });
    const [cancelled, sent] = await Promise.allSettled([cancelling, sending]);
    const { state } = (await producer.get('p-1')) ?? {};
    expect([cancelled.status, sent.status, state]).toEqual(
      state === 'sending' ? ['rejected', 'fulfilled', state] : ['fulfilled', 'rejected', 'cancelled'],
    );
  });

  it('refuses what is neither queued nor rejected, saying the state', async () => {
    await producer.enqueue(payoutInput());
    await producer.cancel('p-1');
    await expect(producer.cancel('p-1')).rejects.toThrow(/p-1 from cancelled to cancelled: .* it is final/);
    await expect(producer.cancel('p-9')).rejects.toThrow(/^Payout p-9 not found$/);
    await expect(producer.cancel('p-1', { by: 'a\nb' })).rejects.toThrow(/by: must be one line/);
  });
});

describe('looking up', () => {
  it('finds a payout by its transaction', async () => {
    await producer.enqueue(payoutInput());
    await ledger.connection.redis.hset(ledger.connection.keys.payout('p-1'), 'state', 'unknown');
    await ledger.change({ payoutId: 'p-1', from: 'unknown', to: 'in_progress', txhash: '0xabc' });
    expect(await producer.getByTxhash('0xabc')).toMatchObject({ payoutId: 'p-1', txhash: '0xabc' });
    expect(await producer.getByTxhash('0xdef')).toBeUndefined();
    expect(await producer.get('p-9')).toBeUndefined();
  });

  it('lists by state and by batch, page by page', async () => {
    await producer.enqueueMany([1, 2, 3].map((n) => payoutInput({ payoutId: `p-${n}`, batch: 'salaries' })));
    const first = await producer.list({ batch: 'salaries', limit: 2 });
    expect(first.payouts.map(({ payoutId }) => payoutId)).toEqual(['p-1', 'p-2']);
    const rest = await producer.list({ batch: 'salaries', limit: 2, cursor: first.next ?? '' });
    expect(rest.payouts.map(({ payoutId }) => payoutId)).toEqual(['p-3']);
    expect(rest.next).toBeUndefined();
    expect((await producer.list({ state: 'queued' })).payouts).toHaveLength(3);
    await expect(producer.list({})).rejects.toThrow(/must name a state or a batch/);
    await expect(producer.list({ state: 'gone' as never })).rejects.toThrow(/state: must be one of queued,/);
  });

  it('counts a batch by state', async () => {
    await producer.enqueueMany([1, 2, 3].map((n) => payoutInput({ payoutId: `p-${n}`, batch: 'salaries' })));
    await producer.cancel('p-2');
    expect(await producer.batchStats('salaries')).toMatchObject({ total: 3, queued: 2, cancelled: 1, completed: 0 });
    await expect(producer.batchStats('none')).rejects.toThrow(/^Batch none not found$/);
  });
});

describe('options and closing', () => {
  it('refuses options that would hang or fail later', () => {
    expect(() => new PayoutProducer({ platformId: 0, redisUrl: testRedisUrl() })).toThrow(InvalidConfigError);
    // Where nobody listens, the search for a Sentinel would outlive the test.
    const redisUrl = `redis-sentinel://${new URL(testRedisUrl()).host}/payouts`;
    expect(() => new PayoutProducer({ platformId: 1, redisUrl, redisReplicas: 0 })).toThrow(
      /REDIS_REPLICAS: .*at least 1/,
    );
    expect(() => new PayoutProducer({ platformId })).toThrow(/redisUrl: is missing/);
    expect(() => new PayoutProducer({ platformId, redisUrl: 'http://x' })).toThrow(/redisUrl: must begin with redis/);
    const connection = new Redis({ lazyConnect: true });
    expect(() => new PayoutProducer({ platformId, connection })).toThrow(/connection: has no commandTimeout/);
  });

  it('leaves a shared connection open and refuses calls after closing', async () => {
    const shared = new PayoutProducer({ platformId, connection: ledger.connection.redis });
    await shared.enqueue(payoutInput());
    await Promise.all([shared.close(), shared.close()]);
    await expect(shared.get('p-1')).rejects.toBeInstanceOf(ClosedError);
    expect(await ledger.get('p-1')).toMatchObject({ state: 'queued' });
  });
});
