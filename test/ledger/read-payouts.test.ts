import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readPayout, readPayouts } from '../../src/ledger/read-payouts.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(async () => {
  account = openTestAccount();
  await account.ledger.enqueue([aPayout('p'), aPayout('q', { amount: '3' })]);
});
afterEach(async () => account.close());

it('reads payouts in the order asked for, and leaves out those that do not exist', async () => {
  const payouts = await readPayouts(account.connection, ['q', 'nobody', 'p']);
  expect(payouts.map(({ payoutId, amount }) => [payoutId, amount])).toEqual([
    ['q', '3'],
    ['p', '12.5'],
  ]);
  expect(await readPayouts(account.connection, [])).toEqual([]);
});

it('reads one, or finds that there is none', async () => {
  expect(await readPayout(account.connection, 'q')).toMatchObject({ payoutId: 'q', amount: '3', state: 'queued' });
  expect(await readPayout(account.connection, 'nobody')).toBeUndefined();
});
