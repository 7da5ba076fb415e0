import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readBatchSummary } from '../../src/ledger/reads/batches.js';
import { openSampleAccount, type SampleAccount } from '../dashboard/support/sample-account.js';
import { HOLD } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';

let account: SampleAccount;

beforeEach(async () => {
  account = await openSampleAccount();
});

afterEach(async () => {
  await account.close();
});

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
  const { total, isWhole, sums, messages } = await readBatchSummary(account.connection, 'b');
  expect({ total, isWhole, messages }).toEqual({ total: 6, isWhole: true, messages: [] });
  expect(sums.queued).toEqual([
    { paymentId: 6, symbol: 'USD', count: 4, amount: '123456789012345678901234567890.300000000000000001' },
    { paymentId: 12, symbol: 'EUR', count: 1, amount: '5' },
    { paymentId: 12, symbol: undefined, count: 1, amount: '7' },
  ]);
  expect(sums.completed).toEqual([]);
});

it('counts the messages of what needs an operator or failed, the most frequent first', async () => {
  for (const [index, message] of ['no', 'empty', 'empty'].entries()) {
    await account.sendAs(`r-${index}`, { kind: 'rejected', message }, { batch: 'b' });
  }
  await account.sendAs('u', { kind: 'unknown', reason: 'empty' }, { batch: 'b' });
  await account.ledger.change({ payoutId: 'r-0', from: 'rejected', to: 'queued', by: 'ann', reason: 'x' });
  for (const payoutId of ['h-0', 'h-1', 'h-2']) {
    await account.enqueue(payoutId, { batch: 'b' });
    await account.sender.holdPayout(payoutId, 0, HOLD);
  }
  const { messages } = await readBatchSummary(account.connection, 'b');
  expect(messages).toEqual([
    { state: 'held', message: HOLD.message, count: 3 },
    { state: 'rejected', message: 'empty', count: 2 },
    { state: 'unknown', message: 'empty', count: 1 },
  ]);
});

it('counts a batch of many pages', async () => {
  await account.ledger.enqueue(
    Array.from({ length: 2_345 }, (_, index) => aPayout(`m-${index}`, { amount: '1', batch: 'b' })),
  );
  const { total, sums } = await readBatchSummary(account.connection, 'b');
  expect([total, sums.queued[0]?.amount]).toEqual([2_345, '2345']);
});

it('is empty where no payout is in the batch', async () => {
  expect(await readBatchSummary(account.connection, 'none')).toMatchObject({ total: 0, isWhole: true });
});
