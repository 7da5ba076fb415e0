import { describe, expect, it } from '@jest/globals';
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
import type { SentOutcome } from '../../src/gateway/gateway.js';
import { catchUp, intercepted, openKeeper } from '../worker/statistics/support/statistics-rig.js';
import { HOLD } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { account, ANN, change, names, sendAs, useAccount } from './support/use-account.js';

useAccount();

async function enqueue(count: number, batch = 'b', name = batch): Promise<string[]> {
  const payoutIds = names(count, `${name}-`);
  await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId, { amount: '1.5', batch })));
  return payoutIds;
}

/** Enqueues and sends one with this message. */
async function send(kind: 'rejected' | 'unknown', message: string, payoutId: string, amount = '1', batch = 'b') {
  await account.ledger.enqueue([aPayout(payoutId, { batch, amount })]);
  const result: SentOutcome = kind === 'rejected' ? { kind, message } : { kind, reason: message };
  await sendAs(result, payoutId);
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
  const given = (payoutId: string, amount: string, paymentId: number, symbol?: string, batch = 'b') =>
    aPayout(payoutId, { amount, batch, paymentId, symbol });
  await account.ledger.enqueue([
    ...amounts.map((amount, index) => given(`a-${index}`, amount, 6, 'USD')),
    given('other', '5', 12, 'EUR'),
    given('without', '7', 12),
    given('elsewhere', '9', 12, 'EUR', 'c'),
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

it('is paid only where it was: what waits or is unknown is left, added up in one currency', async () => {
  await send('rejected', 'no', 'r', '2');
  await send('unknown', 'empty', 'u', '3');
  await cancel(await enqueue(2));
  await enqueue(1, 'b', 'q');
  const progress = progressOf(await summary());
  expect(progress).toMatchObject({ paid: { count: 0 }, failed: { count: 1 }, cancelled: { count: 2 } });
  expect(progress.left).toMatchObject({ count: 2, sums: [{ count: 2, amount: '4.5' }] });
  expect(progress.left.sums).toHaveLength(1);
});

it('says who enqueued it, when, and how many payouts are before it', async () => {
  await enqueue(3, 'before');
  await account.ledger.enqueue([
    aPayout('first', { batch: 'b', requestedBy: 'Ann' }),
    aPayout('second', { batch: 'b' }),
  ]);
  expect(await summary('before')).toMatchObject({ enqueuedBy: undefined, ahead: 0 });
  expect(await readBatchSummary(account.connection, 'none')).toBeUndefined();
  const { enqueuedAt, ...batch } = await summary();
  expect(batch).toMatchObject({ enqueuedBy: 'Ann', ahead: 3 });
  expect(Date.parse(enqueuedAt)).toBe(account.clock.wallNow());
  await cancel(['before-0', 'first']);
  expect((await summary()).ahead).toBe(2);
  await cancel(['second']);
  expect((await summary()).ahead).toBeUndefined();
});

it.each([0, 99, 100, 300])('finds the first of a large batch that still waits, after %i', async (gone) => {
  await enqueue(7, 'before');
  await cancel((await enqueue(300)).slice(0, gone));
  expect((await summary()).ahead).toBe(gone === 300 ? undefined : 7);
});

it('counts the messages of what needs an operator or failed, the most frequent first', async () => {
  await send('rejected', 'other', 'elsewhere', '1', 'c');
  for (const [index, message] of ['no', 'empty', 'empty'].entries()) await send('rejected', message, `r-${index}`);
  await send('unknown', 'empty', 'u');
  await change('r-0', 'rejected', 'queued', ANN);
  for (const payoutId of await enqueue(3, 'b', 'h')) await account.sender.holdPayout(payoutId, 0, HOLD);
  const { messages, urgent } = await summary();
  expect(messages).toEqual([
    { state: 'held', message: HOLD.message, count: 3 },
    { state: 'rejected', message: 'empty', count: 2 },
    { state: 'unknown', message: 'empty', count: 1 },
  ]);
  expect(urgent).toEqual(['u', 'r-2', 'r-1', 'h-2', 'h-1', 'h-0']);
});

describe('what the sender kept', () => {
  const SIZE = 300;
  const keep = async () => catchUp(openKeeper(account.connection));
  const write = async (field: string, text: string) => account.redis.hset(account.connection.keys.batches, field, text);

  /** How many records a read of the sums takes, and whether it is right. */
  async function countRecords(): Promise<number> {
    let records = 0;
    const connection = intercepted(account.connection, async (work, name) => {
      const result = await work();
      if (name === 'pipeline') records += (result as unknown[]).length;
      return result;
    });
    const sums = await readBatchSums(connection, 'b');
    const { keys } = account.connection;
    const payoutIds = await account.redis.zrange(keys.batch('b'), '0', '-1');
    const states = await Promise.all(payoutIds.map(async (id) => account.redis.hget(keys.payout(id), 'state')));
    for (const [state, list] of Object.entries(sums)) {
      const count = states.filter((each) => each === state).length;
      const sum = { paymentId: 7, symbol: undefined, count, amount: String(1.5 * count) };
      expect(list).toEqual(count === 0 ? [] : [sum]);
    }
    return records;
  }

  it('is followed, also where the batch grows beside another', async () => {
    const payoutIds = await enqueue(SIZE);
    expect(await countRecords()).toBeGreaterThanOrEqual(SIZE);
    await keep();
    expect(await countRecords()).toBe(0);
    await cancel(payoutIds.slice(0, 50));
    await enqueue(7, 'b', 'more');
    await cancel((await enqueue(9, 'other')).slice(0, 4));
    expect(await countRecords()).toBe(50 + 7 + 9 + 4);
    const { batches, asOf } = await readBatches(account.connection, 10);
    expect(batches).toMatchObject([{ name: 'b', total: SIZE + 7, ahead: 0, sums: { queued: [{ count: SIZE }] } }]);
    expect(asOf).toBeDefined();
  });

  it.each<[string, number, (payoutIds: readonly string[]) => Promise<unknown>]>([
    [
      'payouts were removed',
      SIZE,
      async () => removePayouts(account.connection, 'cancelled', account.clock.wallNow() + 1, 10),
    ],
    ['the events are trimmed', SIZE, async () => account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 1)],
    ['what was kept makes no sense', SIZE, async () => write('b', '{"queued":5}')],
    ['the last event is none', SIZE, async () => write(POSITION, '"x"')],
    ['much has happened since', 1_200, async (payoutIds) => cancel(payoutIds.slice(100))],
  ])('is left aside where %s', async (_, size, happens) => {
    const payoutIds = await enqueue(size);
    await cancel(payoutIds.slice(0, 5));
    await keep();
    expect(await countRecords()).toBe(0);
    await cancel(payoutIds.slice(5, 10));
    await happens(payoutIds);
    expect(await countRecords()).toBeGreaterThanOrEqual(size - 5);
    // The next sender puts it right, unless the batch cannot be counted from the events.
    await keep();
    expect(await countRecords()).toBeLessThan(size);
  });
});
