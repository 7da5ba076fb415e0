import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.js';
import { readGatewayFacts, requestCurrencies } from '../../../src/ledger/reads/gateway-facts.js';
import { silentLogger } from '../../../src/base/logger.js';
import { keepGatewayFacts } from '../../../src/worker/keep-gateway-facts.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';
import { until } from '../../support/until.js';

let account: TestAccount;
let stop: AbortController;
let calls: string[];
beforeEach(() => {
  account = openTestAccount();
  stop = new AbortController();
  calls = [];
});
afterEach(async () => {
  stop.abort();
  await account.close();
});

const CURRENCIES = [{ payment_id: 6, currency: 'USDT', rate_usd: '1' }];

function keep(gateway: { currencies?: unknown; balance?: unknown }, more = {}): Promise<void> {
  const respond = async (name: 'currencies' | 'balance'): Promise<never> => {
    calls.push(name);
    const response = gateway[name];
    if (response instanceof Error) throw response;
    return Promise.resolve(response as never);
  };
  return keepGatewayFacts(
    {
      gateway: { currencies: async () => respond('currencies'), balance: async () => respond('balance') },
      connection: { ...account.connection, clock: systemClock },
      balanceEveryMs: 60_000,
      currenciesEveryMs: 3_600_000,
      queuedPaymentIds: () => [],
      logger: silentLogger,
      ...more,
    },
    stop.signal,
  );
}

const facts = async () => readGatewayFacts(account.connection);

describe('the facts of the gateway', () => {
  it('are cached with their time, and not queried again by the next sender before they are due', async () => {
    const first = keep({ currencies: CURRENCIES, balance: '12.5' });
    await until('both are known', async () => (await facts()).balanceAt !== undefined);
    stop.abort();
    await first;
    const known = await facts();
    expect(known).toEqual({
      currencies: [{ paymentId: 6, name: 'USDT', usdRate: '1' }],
      currenciesAt: expect.any(Number),
      isWhole: true,
      balance: [{ amount: '12.5' }],
      balanceAt: expect.any(Number),
      failure: undefined,
      failureAt: undefined,
    });
    expect(Date.now() - (known.balanceAt ?? 0)).toBeLessThan(5_000);
    stop = new AbortController();
    void keep({ currencies: CURRENCIES, balance: '13' });
    await delay(200);
    expect(calls).toEqual(['currencies', 'balance']);
  });

  it('keep what was known when a query fails, with the reason, until one succeeds', async () => {
    const gateway: { currencies: unknown; balance: unknown } = {
      currencies: CURRENCIES,
      balance: new Error('no route'),
    };
    void keep(gateway, { balanceEveryMs: 1 });
    await until('it failed', async () => (await facts()).failure !== undefined);
    expect(await facts()).toMatchObject({ failure: '/balance: no route', currencies: [{ paymentId: 6 }], balance: [] });
    expect((await facts()).failureAt).toBeGreaterThan(0);
    gateway.balance = { odd: true };
    await until('it has another reason', async () => (await facts()).failure?.includes('form') === true);
    gateway.balance = '7';
    await until('it succeeded', async () => (await facts()).failure === undefined);
    expect((await facts()).balance).toEqual([{ amount: '7' }]);
  });

  it('are queried again soon after a query that failed, however seldom it is due', async () => {
    const gateway: { currencies: unknown; balance: unknown } = { currencies: new Error('no route'), balance: '7' };
    let aheadMs = 0;
    const clock = { ...systemClock, wallNow: () => systemClock.wallNow() + aheadMs };
    void keep(gateway, { connection: { ...account.connection, clock } });
    await until('both were queried', async () => (await facts()).balanceAt !== undefined);
    expect((await facts()).failure).toBe('/currencies: no route');
    gateway.currencies = CURRENCIES;
    aheadMs = 11_000;
    await until('the gateway is back', async () => (await facts()).failure === undefined);
    expect(calls).toEqual(['currencies', 'balance', 'currencies']);
  });

  it('are queried at once for a currency that is not known, and once for each', async () => {
    await account.redis.hset(account.connection.keys.gateway, {
      currencies: JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT' }], currenciesAt: Date.now() }),
      balance: JSON.stringify({ balance: [], balanceAt: Date.now() }),
    });
    const queued = [6];
    void keep({ currencies: CURRENCIES, balance: '1' }, { queuedPaymentIds: () => queued });
    await delay(200);
    expect(calls).toEqual([]);
    queued.push(99);
    await until('the currencies were queried', () => calls.length > 0);
    await delay(2_200);
    expect(calls).toEqual(['currencies']);
  });

  it('are queried when a producer asks for them, at most every five minutes', async () => {
    await account.redis.hset(account.connection.keys.gateway, {
      currencies: JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT' }], currenciesAt: Date.now() }),
      balance: JSON.stringify({ balance: [], balanceAt: Date.now() }),
    });
    let aheadMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const nameless = [...CURRENCIES, { payment_id: 7 }];
    void keep({ currencies: nameless, balance: '1' }, { connection: { ...account.connection, clock } });
    await delay(200);
    expect(calls).toEqual([]);
    await requestCurrencies(account.connection);
    aheadMs += 10_000;
    await until('the currencies were queried', () => calls.length > 0);
    await until('they are cached', async () => (await facts()).isWhole !== undefined);
    expect(await facts()).toMatchObject({ currencies: [{ paymentId: 6 }], isWhole: false });
    await requestCurrencies(account.connection);
    aheadMs += 60_000;
    await delay(1_500);
    expect(calls).toEqual(['currencies']);
    aheadMs += 240_000;
    await until('they were queried again', () => calls.length === 2);
  });

  it('are not queried where that is switched off', async () => {
    void keep({ currencies: CURRENCIES, balance: '1' }, { balanceEveryMs: 0, currenciesEveryMs: 0 });
    await delay(200);
    expect(calls).toEqual([]);
  });

  it('are not waited for when the sender ends', async () => {
    const hanging = keepGatewayFacts(
      {
        gateway: {
          currencies: async () => new Promise(() => undefined),
          balance: async () => new Promise(() => undefined),
        },
        connection: { ...account.connection, clock: systemClock },
        ...{ balanceEveryMs: 1, currenciesEveryMs: 1, queuedPaymentIds: () => [], logger: silentLogger },
      },
      stop.signal,
    );
    await delay(100);
    stop.abort();
    await hanging;
  });
});
