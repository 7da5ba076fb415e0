import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { readGatewayFacts, requestCurrencies } from '../../src/ledger/reads/gateway-facts.js';
import { keepGatewayFacts, parseBalance, parseCurrencies } from '../../src/worker/keep-gateway-facts.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';

describe('the facts of the gateway', () => {
  let account: TestAccount;
  let stop: AbortController;
  let calls: string[];
  /** For how long the clock is ahead, in ms. */
  let aheadMs: number;
  beforeEach(() => {
    account = closeAfterTest(openTestAccount());
    stop = new AbortController();
    afterTest(() => {
      stop.abort();
    });
    calls = [];
    aheadMs = 0;
  });

  const CURRENCIES = [{ payment_id: 6, currency: 'USDT', rate_usd: '1' }];
  const NO_ROUTE = new Error('no route');
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };

  function keep(gateway: { currencies: unknown; balance: unknown }, more = {}): Promise<void> {
    const respond = (name: 'currencies' | 'balance') => async (): Promise<never> => {
      calls.push(name);
      const response = gateway[name];
      if (response instanceof Error) throw response;
      return Promise.resolve(response as never);
    };
    return keepGatewayFacts(
      {
        gateway: { currencies: respond('currencies'), balance: respond('balance') },
        connection: { ...account.connection, clock },
        ...{ balanceEveryMs: 60_000, currenciesEveryMs: 3_600_000, queuedPaymentIds: () => [], logger: silentLogger },
        ...more,
      },
      stop.signal,
    );
  }

  const facts = async () => readGatewayFacts(account.connection);
  const untilKnown = async (isKnown: (known: Awaited<ReturnType<typeof facts>>) => boolean): Promise<void> =>
    until('it is known', async () => isKnown(await facts()));

  it('are cached with their time, and not queried again by the next sender before they are due', async () => {
    const first = keep({ currencies: CURRENCIES, balance: '12.5' });
    await untilKnown(({ balanceAt }) => balanceAt !== undefined);
    stop.abort();
    await first;
    const known = await facts();
    const currencies = [{ paymentId: 6, name: 'USDT', usdRate: '1' }];
    expect(known).toMatchObject({ currencies, balance: [{ amount: '12.5' }], isWhole: true, failure: undefined });
    expect(Date.now() - (known.balanceAt ?? 0)).toBeLessThan(5_000);
    stop = new AbortController();
    void keep({ currencies: CURRENCIES, balance: '13' });
    await delay(200);
    expect(calls).toEqual(['currencies', 'balance']);
  });

  it('keep what was known when a query fails, with the reason, until one succeeds', async () => {
    const gateway = { currencies: CURRENCIES, balance: NO_ROUTE as unknown };
    void keep(gateway, { balanceEveryMs: 1 });
    await untilKnown(({ failure }) => failure !== undefined);
    expect(await facts()).toMatchObject({ failure: '/balance: no route', currencies: [{ paymentId: 6 }], balance: [] });
    gateway.balance = { odd: true };
    await untilKnown(({ failure }) => failure?.includes('form') === true);
    gateway.balance = '7';
    await untilKnown(({ failure }) => failure === undefined);
    expect((await facts()).balance).toEqual([{ amount: '7' }]);
  });

  it('are queried when a producer asks for them, at most every five minutes', async () => {
    const [currenciesAt, balanceAt] = [Date.now(), Date.now()];
    await account.redis.hset(account.connection.keys.gateway, {
      currencies: JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT' }], currenciesAt }),
      balance: JSON.stringify({ balance: [], balanceAt }),
    });
    void keep({ currencies: [...CURRENCIES, { payment_id: 7 }], balance: '1' });
    await delay(200);
    expect(calls).toEqual([]);
    await requestCurrencies(account.connection);
    aheadMs += 10_000;
    await until('the currencies were queried', () => calls.length > 0);
    await untilKnown(({ isWhole }) => isWhole !== undefined);
    expect(await facts()).toMatchObject({ currencies: [{ paymentId: 6 }], isWhole: false });
    await requestCurrencies(account.connection);
    aheadMs += 60_000;
    await delay(1_500);
    expect(calls).toEqual(['currencies']);
    aheadMs += 240_000;
    await until('they were queried again', () => calls.length === 2);
  });
});

const USDT = ['TRC-20', 'ERC-20'].map((network, index) => ({
  ...{ payment_id: 6 + index, currency: 'USDT', name: `Tether (${network})`, rate_usd: '1' },
}));

it('currencies have the code as their name, with the network where several share it', () => {
  expect(parseCurrencies([...USDT, { payment_id: 1, currency: 'BTC' }])).toMatchObject([
    { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
    { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
    { paymentId: 1, name: 'BTC' },
  ]);
});

it.each<readonly [Readonly<Record<string, unknown>>, string | undefined, string | undefined]>([
  [{ id: 6, code: 'USDT', rate: 1.5e-7 }, 'USDT', '0.00000015'],
  [{ ID: '6', Ticker: 'USDT\n' }, 'USDT', undefined],
  [{ currency_id: '6', coin: 'USDT', usd: '-1' }, 'USDT', undefined],
  ...[{ id: 6 }, { name: 'USDT' }, { id: 1.5, name: 'USDT' }].map((item) => [item, undefined, undefined] as const),
])('a currency is understood as %j: %p', (item, name, usdRate) => {
  expect(parseCurrencies([item])).toEqual(name === undefined ? [] : [{ paymentId: 6, name, usdRate }]);
});

const of = (amount: string, more = {}) => ({ paymentId: undefined, symbol: undefined, amount, ...more });
const [SEVEN, BITCOIN] = [of('7', { paymentId: 6 }), of('1', { paymentId: 1 })];
it.each<readonly [unknown, object[] | undefined]>([
  ['1000000.50', [of('1000000.5')]],
  [12.5, [of('12.5')]],
  [-3, [of('0')]],
  [{ amount: '5', currency: 'USD' }, [of('5', { symbol: 'USD' })]],
  [{ BTC: '0.5', USD: 7 }, [of('0.5', { paymentId: 1 }), of('7', { symbol: 'USD' })]],
  [
    [...[{ payment_id: 6, balance: '7' }], { code: 'BTC', value: '1' }],
    [SEVEN, BITCOIN],
  ],
  [[], []],
  ...['plenty', null, { currency: 'USD' }, ['1', '2']].map((other) => [other, undefined] as const),
])('a balance is understood as %j, or not', (balance, parsed) => {
  expect(parseBalance(balance, parseCurrencies([...USDT, { id: 1, code: 'BTC' }]))).toEqual(parsed);
});
