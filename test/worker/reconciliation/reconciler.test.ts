import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import type { Balance } from '../../../src/ledger/reads/gateway-facts.js';
import {
  acceptDrops,
  readReconciliation,
  saveReconciliation,
  summariseDrops,
  type ReconciledBalance,
} from '../../../src/ledger/reads/reconciliation.js';
import { countPayouts } from '../../../src/ledger/reads/state-events.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { readEvents } from '../../../src/producer/events/payout-events.js';
import { Reconciler } from '../../../src/worker/reconciliation/reconciler.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { recordingLogger } from '../../gateway/support/test-client.js';

const SETTLE_MS = 60_000;
const CURRENCIES = [
  { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
  { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
  { paymentId: 10, name: 'BTC', usdRate: '50000' },
];

let account: TestAccount;
let logger: ReturnType<typeof recordingLogger>;
let reconciler: Reconciler;
let balances: Balance[];
let currencies: typeof CURRENCIES;
let ageMs: number | undefined;

beforeEach(async () => {
  account = openTestAccount();
  logger = recordingLogger();
  reconciler = newReconciler();
  currencies = CURRENCIES;
  ageMs = 0;
  balances = [{ paymentId: 6, symbol: undefined, amount: '10000' }];
  await read();
  // The largest fee so far is known.
  await send('first', '1');
  await finish('first', 'completed', '1');
  await settle();
});

afterEach(async () => {
  await account.close();
});

function newReconciler(connection = account.connection): Reconciler {
  return new Reconciler(connection, SETTLE_MS, logger);
}

async function read(during: () => Promise<void> = async () => Promise.resolve()): Promise<void> {
  await reconciler.compare(
    async () => {
      const stated = structuredClone(balances);
      await during();
      return stated;
    },
    { currencies, ageMs },
  );
}

/** Two readings, of which the second finds all that ended settled. */
async function settle(): Promise<void> {
  await read();
  account.clock.advance(2 * SETTLE_MS);
  await read();
}

async function send(payoutId: string, amount: string, paymentId = 6, symbol?: string): Promise<void> {
  await account.ledger.enqueue([aPayout(payoutId, { amount, paymentId, symbol })]);
  await account.ledger.change({ payoutId, from: 'queued', to: 'sending' });
}

async function finish(payoutId: string, to: PayoutState, fee?: string): Promise<void> {
  await account.ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `tx-${payoutId}` });
  await account.ledger.change({ payoutId, from: 'in_progress', to, ...(fee === undefined ? {} : { fee }) });
}

function set(amount: string): void {
  balances = [{ paymentId: 6, symbol: undefined, amount }];
}

async function stored(index = 0): Promise<ReconciledBalance> {
  const { reconciliation } = await readReconciliation(account.connection);
  const balance = reconciliation?.balances[index];
  if (balance === undefined) throw new Error('it was not compared');
  return balance;
}

async function missing(): Promise<Record<string, string>> {
  const drops = summariseDrops(await readReconciliation(account.connection), CURRENCIES);
  return Object.fromEntries(drops.filter(({ amount }) => amount !== '0').map((drop) => [drop.currency, drop.amount]));
}

/** How often one was reported. */
async function drops(): Promise<number> {
  const events = await readEvents(account.connection, { sinceMs: 0 }, 1_000);
  return events.filter(({ type }) => type === 'balance_dropped').length;
}

describe('what adds up', () => {
  it('is what was sent, with or without its fee, failed, unknown and rejected, and what was deposited', async () => {
    await send('a', '100');
    set('9900');
    await read();
    await finish('a', 'completed', '1');
    set('9899');
    await settle();
    await send('b', '50');
    await finish('b', 'failed');
    await read();
    set('9849');
    await settle();
    set('9899');
    await settle();
    await send('c', '70');
    await account.ledger.change({ payoutId: 'c', from: 'sending', to: 'unknown' });
    set('9829');
    await settle();
    await send('d', '30');
    await account.ledger.change({ payoutId: 'd', from: 'sending', to: 'rejected' });
    await settle();
    set('12829');
    await settle();
    expect(await missing()).toEqual({});
    expect(await stored()).toMatchObject({ unexplained: '0', isSuspected: false });
    expect(await drops()).toBe(0);
  });

  it('is a send that begins, is taken and ends while the balance is read', async () => {
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
    expect(await missing()).toEqual({});
    expect(await stored()).toMatchObject({ unexplained: '0' });
  });

  it('is a payment that was completed before the balance shows it', async () => {
    await send('a', '1000');
    await finish('a', 'completed', '1');
    await read();
    await read();
    set('9000');
    await read();
    await read();
    expect(await missing()).toEqual({});
  });

  it('is a payout in another currency, converted at about the rate', async () => {
    balances = [{ paymentId: undefined, symbol: 'USD', amount: '100000' }];
    await send('fee', '0.01', 10);
    await finish('fee', 'completed', '0.0001');
    await settle();
    await send('b', '0.5', 10);
    await finish('b', 'completed', '0.0001');
    balances = [{ paymentId: undefined, symbol: 'USD', amount: '74000' }];
    await settle();
    expect(await missing()).toEqual({});
    balances = [{ paymentId: undefined, symbol: 'USD', amount: '60000' }];
    await settle();
    expect(await missing()).toEqual({ USD: '14000' });
  });
});

it('adds up two balances of the same name, which the gateway states in any order', async () => {
  balances = ['900', '100'].map((amount) => ({ paymentId: undefined, symbol: 'USDT', amount }));
  await settle();
  balances.reverse();
  await settle();
  expect(await missing()).toEqual({});
  expect(await stored()).toMatchObject({ amount: '1000', unexplained: '0' });
});

describe('what adds up in another currency', () => {
  it.each(['in this process', 'after a restart'])(
    'is a payout whose rate fell while it was open, %s',
    async (where) => {
      const worth = (paid: number): Balance[] => [
        { paymentId: undefined, symbol: 'USD', amount: String(100_000 - paid) },
      ];
      balances = worth(0);
      await send('fee', '0.01', 10);
      await finish('fee', 'completed', '0.0001');
      await settle();
      await send('b', '0.5', 10);
      balances = worth(25_000);
      await settle();
      currencies = CURRENCIES.map((currency) => ({ ...currency, usdRate: currency.paymentId === 10 ? '30000' : '1' }));
      if (where === 'after a restart') reconciler = newReconciler();
      await settle();
      await finish('b', 'completed', '0.0001');
      await settle();
      expect(await missing()).toEqual({});
    },
  );
});

describe('what does not add up', () => {
  it('is reported at the second reading: event, activity, log', async () => {
    set('9000');
    await read();
    expect(await stored()).toMatchObject({ unexplained: '1000', isSuspected: true });
    expect(await drops()).toBe(0);
    await read();
    const reason = 'the balance fell by 1,000 USDT (TRC-20) more than the payouts explain';
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '1000' });
    const events = await readEvents(account.connection, { sinceMs: 0 }, 1_000);
    expect(events.at(-1)).toMatchObject({ type: 'balance_dropped', by: 'worker', reason });
    const { activities } = await readActivity(account.connection, 1);
    expect(activities).toMatchObject([{ what: 'balance_dropped', by: 'worker', reason, count: 0 }]);
    expect(logger.lines.map(({ message }) => message)).toContain(
      'unexplained drop of the balance; see `payouts reconcile`',
    );
    await read();
    expect(await drops()).toBe(1);
  });

  it('is not one reading that the next contradicts', async () => {
    set('0');
    await read();
    set('10000');
    await read();
    set('0');
    await read();
    set('10000');
    await settle();
    expect(await missing()).toEqual({});
  });

  it('adds up over readings, restarts and takeovers, also while payouts are sent', async () => {
    let balance = 10_000;
    for (let number = 1; number <= 8; number += 1) {
      await send(`p-${number}`, '100');
      await finish(`p-${number}`, 'completed', '0');
      balance -= 104;
      set(String(balance));
      await settle();
      reconciler = newReconciler();
    }
    const found = Number((await missing())['USDT (TRC-20)']);
    expect(found).toBeGreaterThan(10);
    expect(found).toBeLessThanOrEqual(32);
  });

  it('is found after a restart, though it was taken while nobody looked', async () => {
    set('8000');
    reconciler = newReconciler();
    await read();
    await read();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '2000' });
  });

  it('is what was sent although someone stated that it was not', async () => {
    await send('a', '500');
    await account.ledger.change({ payoutId: 'a', from: 'sending', to: 'unknown' });
    set('9500');
    await settle();
    expect(await missing()).toEqual({});
    await account.ledger.change({ payoutId: 'a', from: 'unknown', to: 'queued', by: 'ann', reason: 'not sent' });
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '500' });
  });

  it('is a balance that is not stated any more, but not one that has got another name', async () => {
    balances = [...balances, { paymentId: 10, symbol: undefined, amount: '2' }];
    await settle();
    balances = balances.slice(1);
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '10000' });
    balances = [{ paymentId: undefined, symbol: 'bitcoin', amount: '2' }];
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '10000' });
  });

  it('needs an operator until he accepts it; what is found then is told again', async () => {
    set('9000');
    await settle();
    const { drop } = await stored();
    await acceptDrops(account.connection, drop?.at ?? 0, { by: 'ann', reason: 'cold wallet' });
    expect(await missing()).toEqual({});
    await read();
    expect(await missing()).toEqual({});
    account.clock.advance(1_000);
    set('8500');
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '500' });
    const { activities } = await readActivity(account.connection, 2);
    expect(activities.map(({ what, by }) => `${what} ${by}`)).toEqual(['balance_dropped worker', 'drop_accepted ann']);
  });
});

describe('what cannot be compared', () => {
  it('is a balance from which a currency may be taken that has no known rate or fee', async () => {
    await send('new', '1', 9);
    set('5000');
    await settle();
    expect(await stored()).toMatchObject({ doubt: expect.stringContaining('fee, or its rate') });
    await account.ledger.change({ payoutId: 'new', from: 'sending', to: 'rejected' });
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': '5000' });
  });

  it('is what is converted by rates that are old or not known', async () => {
    balances = [{ paymentId: undefined, symbol: 'USD', amount: '100000' }];
    await settle();
    for (const age of [4 * 3_600_000, undefined]) {
      ageMs = age;
      await send(`old-${String(age)}`, '1');
      await settle();
      expect(await stored()).toMatchObject({ doubt: expect.stringContaining('its rate') });
      await account.ledger.change({ payoutId: `old-${String(age)}`, from: 'sending', to: 'rejected' });
    }
    await settle();
    expect(await stored()).toMatchObject({ unexplained: '0' });
  });

  it('is an account in a symbol of its own', async () => {
    balances = [{ paymentId: undefined, symbol: undefined, amount: '10000' }];
    await settle();
    await send('eur', '5', 6, 'EUR');
    balances = [{ paymentId: undefined, symbol: undefined, amount: '2' }];
    await settle();
    expect(await missing()).toEqual({});
  });

  it('begins where events are missing, and is judged again once what ended before is settled', async () => {
    await account.redis.xtrim(account.connection.keys.events, 'MAXLEN', 0);
    await send('after', '1');
    set('5000');
    await read();
    expect(await stored()).toMatchObject({ doubt: expect.any(String), baseline: { amount: '5000' } });
    set('4000');
    await settle();
    await read();
    expect(await missing()).toEqual({});
    set('3000');
    await settle();
    expect(await missing()).toEqual({ 'USDT (TRC-20)': expect.stringMatching(/^99\d/) });
  });
});

it('goes on from what the version before stored, and reports nothing because of it', async () => {
  await send('a', '300');
  await finish('a', 'completed', '1');
  await read();
  const { reconciliation } = await readReconciliation(account.connection);
  if (reconciliation === undefined) throw new Error('it was not compared');
  const [balance] = reconciliation.balances;
  const { newestEventId: position } = await countPayouts(account.connection);
  // As version 0.2 has it: the newest event, sums with `low`, and those of sends that ended lately as a list.
  const recent = [{ count: 1, low: '300', high: '301', at: account.clock.wallNow() }];
  const settled = { count: 0, low: '0', high: '0' };
  const balances = [{ ...balance, settled, recent }] as unknown as ReconciledBalance[];
  const former = { ...reconciliation, followedTo: undefined, position, balances };
  await saveReconciliation(account.connection, former);
  reconciler = newReconciler();
  await read();
  set('9700');
  await settle();
  await read();
  expect(await missing()).toEqual({});
  expect(await stored()).toMatchObject({ amount: '9700', unexplained: '0' });
  set('8700');
  await settle();
  expect(await missing()).toEqual({ 'USDT (TRC-20)': expect.stringMatching(/^(999|1000)$/) });
});

it('returns the balance also where Redis cannot be asked, and where it is asked again later', async () => {
  const broken = connectLedger(account.redis, account.platformId, account.clock);
  let isDown = true;
  const run: typeof broken.run = async (...args) =>
    isDown ? Promise.reject(new Error('Redis is unavailable')) : broken.run(...args);
  await account.redis.hdel(account.connection.keys.gateway, 'reconciliation');
  reconciler = newReconciler({ ...broken, run });
  const watch = async (): Promise<readonly Balance[]> =>
    reconciler.compare(async () => Promise.resolve(balances), { currencies: CURRENCIES, ageMs: 0 });
  expect(await watch()).toEqual(balances);
  expect(logger.lines.map(({ message }) => message)).toContain('the balance could not be compared with the payouts');
  isDown = false;
  await watch();
  expect(await stored()).toMatchObject({ baseline: { amount: '10000' } });
});
