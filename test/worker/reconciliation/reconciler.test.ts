import { beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '../../../src/base/logger.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import type { Balance } from '../../../src/ledger/reads/gateway-facts.js';
import { acceptDrops, readReconciliation, summariseDrops } from '../../../src/ledger/reads/reconciliation.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { readEvents } from '../../../src/producer/events/payout-events.js';
import { Reconciler } from '../../../src/worker/reconciliation/reconciler.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { closeAfterTest } from '../support/close-after-test.js';

const SETTLE_MS = 60_000;
const USDT = 'USDT (TRC-20)';
const CURRENCIES = [
  { paymentId: 6, name: USDT, usdRate: '1' },
  { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
  { paymentId: 10, name: 'BTC', usdRate: '50000' },
];

let account: TestAccount;
let reconciler: Reconciler;
let balances: Balance[];
let currencies: typeof CURRENCIES;

beforeEach(async () => {
  account = closeAfterTest(openTestAccount());
  restart();
  currencies = CURRENCIES;
  set('10000');
  await read();
  // The largest fee so far is known.
  await send('first', '1');
  await finish('first', 'completed', '1');
  await settle();
});

const stating = (amount: string, given: Partial<Balance> = {}): Balance => ({
  ...{ paymentId: undefined, symbol: undefined, amount, ...given },
});
/** Both clocks of a test move together. */
const restart = () => {
  const { connection, clock } = account;
  const both = { ...clock, now: () => clock.wallNow() };
  reconciler = new Reconciler({ ...connection, clock: both }, SETTLE_MS, silentLogger);
};
const set = (amount: string) => void (balances = [stating(amount, { paymentId: 6 })]);
const setUsd = (amount: string) => void (balances = [stating(amount, { symbol: 'USD' })]);

async function read(during?: () => Promise<void>): Promise<readonly Balance[]> {
  const ask = async (): Promise<Balance[]> => {
    const stated = structuredClone(balances);
    await during?.();
    return stated;
  };
  return reconciler.compare(ask, currencies);
}

async function settle(amount?: string) {
  if (amount !== undefined) set(amount);
  await read();
  account.clock.advance(2 * SETTLE_MS);
  await read();
}

async function send(payoutId: string, amount: string, paymentId = 6, symbol?: string) {
  await account.ledger.enqueue([aPayout(payoutId, { amount, paymentId, symbol })]);
  await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
}

async function finish(payoutId: string, to: PayoutState, fee?: string) {
  await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', gatewayId: `tx-${payoutId}` });
  await account.ledger.change({ payoutId, from: 'in_progress', to, ...(fee && { fee }) });
}

const give = async (payoutId: string, to: PayoutState) => account.ledger.change({ payoutId, from: 'sending', to });

async function stored() {
  const balance = (await readReconciliation(account.connection)).reconciliation?.balances[0];
  if (balance === undefined) throw new Error('it was not compared');
  return balance;
}

async function expectMissing(expected: Readonly<Record<string, unknown>>) {
  const drops = summariseDrops(await readReconciliation(account.connection), CURRENCIES);
  const missing = drops.filter(({ amount }) => amount !== '0').map(({ currency, amount }) => [currency, amount]);
  expect(Object.fromEntries(missing)).toEqual(expected);
}

async function reportedDrops() {
  const events = await readEvents(account.connection, { sinceMs: 0 }, 1_000);
  return events.filter(({ type }) => type === 'balance_dropped');
}

it('what adds up is what was sent with or without fee, failed, unknown, rejected or deposited', async () => {
  await send('a', '100');
  set('9900');
  await read();
  await finish('a', 'completed', '1');
  await settle('9899');
  await send('b', '50');
  await finish('b', 'failed');
  await read();
  await settle('9849');
  await settle('9899');
  await send('c', '70');
  await give('c', 'unknown');
  await settle('9829');
  await send('d', '30');
  await give('d', 'rejected');
  await settle();
  await settle('12829');
  await expectMissing({});
  expect(await stored()).toMatchObject({ unexplained: '0', isSuspected: false });
  expect(await reportedDrops()).toEqual([]);
});

it('what adds up is a send that begins, is taken or ends while the balance is read', async () => {
  for (const number of [1, 2, 3]) {
    const payoutId = `race-${number}`;
    set(String(10_000 - number * 1_000));
    await read(async () => {
      await send(payoutId, '1000');
      if (number === 3) await finish(payoutId, 'completed', '1');
    });
    expect(await stored()).toMatchObject({ unexplained: '0', isSuspected: false });
  }
  await read();
  await send('a', '1000');
  await finish('a', 'completed', '1');
  await read();
  await read();
  set('6000');
  await read();
  await read();
  await expectMissing({});
  expect(await stored()).toMatchObject({ unexplained: '0' });
});

it('what adds up is a payout in another currency, at a rate that fell, also after a restart', async () => {
  setUsd('100000');
  await send('fee', '0.01', 10);
  await finish('fee', 'completed', '0.0001');
  await settle();
  await send('b', '0.5', 10);
  setUsd('75000');
  await settle();
  currencies = CURRENCIES.map((each) => ({ ...each, usdRate: each.paymentId === 10 ? '30000' : '1' }));
  restart();
  await settle();
  await finish('b', 'completed', '0.0001');
  await settle();
  await expectMissing({});
  setUsd('60000');
  await settle();
  await expectMissing({ USD: '15000' });
});

it('what does not add up is reported at the second reading: event, activity, log', async () => {
  set('9000');
  await read();
  expect(await stored()).toMatchObject({ unexplained: '1000', isSuspected: true });
  expect(await reportedDrops()).toEqual([]);
  await read();
  const reason = 'the balance fell by 1,000 USDT (TRC-20) more than the payouts explain';
  await expectMissing({ [USDT]: '1000' });
  expect(await reportedDrops()).toMatchObject([{ by: 'worker', reason }]);
  const { activities } = await readActivity(account.connection, 1);
  expect(activities).toMatchObject([{ what: 'balance_dropped', by: 'worker', reason, count: 0 }]);
  await read();
  expect(await reportedDrops()).toHaveLength(1);
});

it('what does not add up grows over readings and restarts, also while payouts are sent', async () => {
  for (let number = 1; number <= 8; number += 1) {
    await send(`p-${number}`, '100');
    await finish(`p-${number}`, 'completed', '0');
    await settle(String(10_000 - 104 * number));
    restart();
  }
  const { drop } = await stored();
  expect(Number(drop?.amount)).toBeGreaterThan(10);
  expect(Number(drop?.amount)).toBeLessThanOrEqual(32);
});

it('what does not add up is a balance no longer stated, unless it got another name', async () => {
  balances = [...balances, stating('2', { paymentId: 10 })];
  await settle();
  balances = balances.slice(1);
  await settle();
  await expectMissing({ [USDT]: '10000' });
  balances = [stating('2', { symbol: 'bitcoin' })];
  await settle();
  await expectMissing({ [USDT]: '10000' });
  // One code for two networks.
  balances = ['1', '1'].map((amount) => stating(amount, { symbol: 'bitcoin' }));
  await settle();
  await expectMissing({ [USDT]: '10000' });
  balances = ['0.5', '1'].map((amount) => stating(amount, { symbol: 'bitcoin' }));
  await settle();
  await expectMissing({ [USDT]: '10000', bitcoin: '0.5' });
});

it('what adds up is a small balance that the gateway rounds to two steps of its last digit', async () => {
  balances = [stating('3.00', { paymentId: 6 })];
  restart();
  await account.redis.hdel(account.connection.keys.gateway, 'reconciliation');
  await settle();
  balances = [stating('2.98', { paymentId: 6 })];
  await settle();
  await expectMissing({});
  balances = [stating('2.97', { paymentId: 6 })];
  await settle();
  await expectMissing({ [USDT]: '0.03' });
});

it('what does not add up needs an operator until it is accepted', async () => {
  await settle('9000');
  const { drop } = await stored();
  await acceptDrops(account.connection, drop?.at ?? 0, { by: 'ann', reason: 'cold wallet' });
  await expectMissing({});
  await read();
  await expectMissing({});
  account.clock.advance(1_000);
  await settle('8500');
  await expectMissing({ [USDT]: '500' });
});

it('what cannot be compared is a balance whose currency has no known rate or fee', async () => {
  await send('new', '1', 9);
  await settle('5000');
  expect(await stored()).toMatchObject({ incomparable: expect.stringContaining('fee, or its rate') });
  await give('new', 'rejected');
  await settle();
  await expectMissing({ [USDT]: '5000' });
});

it('what cannot be compared begins where events are missing, until that is settled', async () => {
  await account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 0);
  await send('after', '1');
  set('5000');
  await read();
  expect(await stored()).toMatchObject({ incomparable: expect.any(String), baseline: { amount: '5000' } });
  await settle('4000');
  await read();
  await expectMissing({});
  await settle('3000');
  await expectMissing({ [USDT]: expect.stringMatching(/^99\d/) });
});
