import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type BatchSummary,
  POSITION,
  progressOf,
  readBatches,
  readBatchSummary,
  readBatchSums,
} from '../../src/ledger/reads/batches.js';
import { PAYOUTS_PER_CHANGE } from '../../src/ledger/payout-ledger.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { openSampleAccount, type SampleAccount } from '../dashboard/support/sample-account.js';
import { catchUp, intercepted, openKeeper } from '../worker/statistics/support/statistics-rig.js';
import { HOLD } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';

const ANN = { by: 'ann', reason: 'test' };

let account: SampleAccount;

beforeEach(async () => {
  account = await openSampleAccount();
});

afterEach(async () => {
  await account.close();
});

async function enqueue(count: number, batch = 'b', name = batch): Promise<string[]> {
  const payouts = Array.from({ length: count }, (_, index) => aPayout(`${name}-${index}`, { amount: '1.5', batch }));
  await account.ledger.enqueue(payouts);
  return payouts.map(({ payoutId }) => payoutId);
}

async function cancel(payoutIds: readonly string[]): Promise<void> {
  for (let start = 0; start < payoutIds.length; start += PAYOUTS_PER_CHANGE) {
    const payouts = payoutIds.slice(start, start + PAYOUTS_PER_CHANGE).map((payoutId) => ({ payoutId }));
    await account.ledger.changeMany({ from: 'queued', to: 'cancelled', payouts, isOneAct: true, ...ANN });
  }
}

async function summary(batch = 'b'): Promise<BatchSummary> {
  const found = await readBatchSummary(account.connection, batch);
  if (found === undefined) throw new Error('the batch is empty');
  return found;
}

it('sums a batch exactly, by state, currency and account currency', async () => {
  const amounts = ['0.1', '0.2', '0.000000000000000001', '123456789012345678901234567890'];
  const payouts = amounts.map((amount, index) =>
    aPayout(`a-${index}`, { amount, batch: 'b', paymentId: 6, symbol: 'USD' }),
  );
  await account.ledger.enqueue([
    ...payouts,
    aPayout('other', { amount: '5', batch: 'b', paymentId: 12, symbol: 'EUR' }),
    aPayout('without', { amount: '7', batch: 'b', paymentId: 12, symbol: undefined }),
    aPayout('elsewhere', { amount: '9', batch: 'c' }),
  ]);
  const { total, sums, messages } = await summary();
  expect({ total, messages }).toEqual({ total: 6, messages: [] });
  expect(sums.queued).toEqual([
    { paymentId: 6, symbol: 'USD', count: 4, amount: '123456789012345678901234567890.300000000000000001' },
    { paymentId: 12, symbol: undefined, count: 1, amount: '7' },
    { paymentId: 12, symbol: 'EUR', count: 1, amount: '5' },
  ]);
  expect(sums.completed).toEqual([]);
});

it('is paid only where it was: rejected, cancelled and unknown payouts are not done', async () => {
  await account.sendAs('r', { kind: 'rejected', message: 'no' }, { batch: 'b', amount: '2' });
  await account.sendAs('u', { kind: 'unknown', reason: 'empty' }, { batch: 'b', amount: '3' });
  await cancel(await enqueue(2));
  await account.enqueue('q', { batch: 'b', amount: '0.5' });
  const { count: left, sums } = progressOf(await summary()).left;
  expect(progressOf(await summary())).toMatchObject({
    paid: { count: 0 },
    failed: { count: 1 },
    cancelled: { count: 2 },
  });
  // The unknown and the queued one, in one currency.
  expect({ left, sums }).toMatchObject({ left: 2, sums: [{ count: 2, amount: '3.5' }] });
  expect(sums).toHaveLength(1);
});

it('adds up the states of a part in one currency', async () => {
  await account.sendAs('u', { kind: 'unknown', reason: 'empty' }, { batch: 'b', amount: '3' });
  await account.enqueue('q', { batch: 'b', amount: '4' });
  expect(progressOf(await summary()).left).toMatchObject({ count: 2, sums: [{ count: 2, amount: '7' }] });
});

it('says who enqueued it, when, and how many payouts are before it', async () => {
  await enqueue(3, 'before');
  await account.ledger.enqueue([
    aPayout('first', { batch: 'b', requestedBy: 'Ann' }),
    aPayout('second', { batch: 'b' }),
  ]);
  const before = await summary('before');
  const { enqueuedAt, ...batch } = await summary();
  expect(before).toMatchObject({ enqueuedBy: undefined, ahead: 0 });
  expect(batch).toMatchObject({ enqueuedBy: 'Ann', ahead: 3 });
  expect(Date.parse(enqueuedAt)).toBeCloseTo(account.connection.clock.wallNow(), -4);
  await cancel(['before-0', 'first']);
  expect((await summary()).ahead).toBe(2);
  await cancel(['second']);
  expect((await summary()).ahead).toBeUndefined();
});

it.each([0, 1, 99, 100, 299, 300])('finds the first of a large batch that still waits, after %i', async (gone) => {
  await enqueue(7, 'before');
  const ids = await enqueue(300);
  await cancel(ids.slice(0, gone));
  expect((await summary()).ahead).toBe(gone === 300 ? undefined : 7);
});

it('counts the messages of what needs an operator or failed, the most frequent first', async () => {
  await account.sendAs('elsewhere', { kind: 'rejected', message: 'other' }, { batch: 'c' });
  for (const [index, message] of ['no', 'empty', 'empty'].entries()) {
    await account.sendAs(`r-${index}`, { kind: 'rejected', message }, { batch: 'b' });
  }
  await account.sendAs('u', { kind: 'unknown', reason: 'empty' }, { batch: 'b' });
  await account.ledger.change({ payoutId: 'r-0', from: 'rejected', to: 'queued', by: 'ann', reason: 'x' });
  for (const payoutId of ['h-0', 'h-1', 'h-2']) {
    await account.enqueue(payoutId, { batch: 'b' });
    await account.sender.holdPayout(payoutId, 0, HOLD);
  }
  const { messages, urgent } = await summary();
  expect(messages).toEqual([
    { state: 'held', message: HOLD.message, count: 3 },
    { state: 'rejected', message: 'empty', count: 2 },
    { state: 'unknown', message: 'empty', count: 1 },
  ]);
  expect(urgent).toEqual(['u', 'r-2', 'r-1', 'h-2', 'h-1', 'h-0']);
});

it('is undefined where no payout is in the batch', async () => {
  expect(await readBatchSummary(account.connection, 'none')).toBeUndefined();
});

describe('what the sender kept', () => {
  const FEW = 50;

  /** How many records a read of the sums takes, and whether it is right. */
  async function countRecords(): Promise<number> {
    let records = 0;
    const connection = intercepted(account.connection, async (work, name) => {
      const result = await work();
      if (name === 'pipeline') records += (result as unknown[]).length;
      return result;
    });
    const sums = await readBatchSums(connection, 'b');
    const states = await Promise.all(
      (await account.connection.redis.zrange(account.connection.keys.batch('b'), '0', '-1')).map(async (payoutId) =>
        account.connection.redis.hget(account.connection.keys.payout(payoutId), 'state'),
      ),
    );
    for (const [state, list] of Object.entries(sums)) {
      const count = states.filter((each) => each === state).length;
      expect(list).toEqual(
        count === 0 ? [] : [{ paymentId: 7, symbol: undefined, count, amount: String(1.5 * count) }],
      );
    }
    return records;
  }

  it('is followed, also where the batch grows beside another', async () => {
    const payoutIds = await enqueue(1_500);
    expect(await countRecords()).toBeGreaterThan(1_499);
    await catchUp(openKeeper(account.connection));
    expect(await countRecords()).toBe(0);
    await cancel(payoutIds.slice(0, FEW));
    await enqueue(7, 'b', 'more');
    await cancel((await enqueue(9, 'other')).slice(0, 4));
    expect(await countRecords()).toBe(FEW + 7 + 9 + 4);
    const { batches, asOf } = await readBatches(account.connection, 10);
    expect(batches).toMatchObject([{ name: 'b', total: 1_507, ahead: 0, sums: { queued: [{ count: 1_500 }] } }]);
    expect(asOf).toBeDefined();
  });

  it.each<[string, (payoutIds: readonly string[]) => Promise<unknown>]>([
    [
      'payouts were removed',
      async () => removePayouts(account.connection, 'cancelled', account.connection.clock.wallNow() + 1, 10),
    ],
    [
      'the events are trimmed',
      async (payoutIds) => {
        await cancel(payoutIds.slice(10, 12));
        await account.connection.redis.xtrim(account.connection.keys.events, 'MAXLEN', 1);
      },
    ],
    [
      'what was kept makes no sense',
      async () => account.connection.redis.hset(account.connection.keys.batches, 'b', '{"a'),
    ],
    [
      'what was kept has another form',
      async () => account.connection.redis.hset(account.connection.keys.batches, 'b', '{"queued":5}'),
    ],
    [
      'the last event is none',
      async () => account.connection.redis.hset(account.connection.keys.batches, POSITION, '"x"'),
    ],
    ['what was kept is none', async () => account.connection.redis.hset(account.connection.keys.batches, 'b', 'null')],
    ['much has happened since', async (payoutIds) => cancel(payoutIds.slice(100, 1_200))],
  ])('is left aside where %s', async (_, happens) => {
    const payoutIds = await enqueue(1_500);
    await cancel(payoutIds.slice(0, 5));
    await catchUp(openKeeper(account.connection));
    expect(await countRecords()).toBe(0);
    await happens(payoutIds);
    await cancel(payoutIds.slice(5, 10));
    expect(await countRecords()).toBeGreaterThan(1_400);
  });

  it.each(['{"a', 'null', '{"queued":5}'])('is put right by the next sender if someone wrote %s', async (text) => {
    await enqueue(1_500);
    await catchUp(openKeeper(account.connection));
    await account.connection.redis.hset(account.connection.keys.batches, 'b', text);
    await catchUp(openKeeper(account.connection));
    expect(await countRecords()).toBe(0);
  });
});
