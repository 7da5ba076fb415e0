import { beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import type { PayoutProducer, PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { type Currency, takeCurrenciesRequest, writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { account } from '../ledger/support/use-account.js';
import { payoutInput } from './support/payout-input.js';
import { openProducer, useProducer } from './support/use-producer.js';

const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const OTHER_TRON = 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC';
const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const USDT: Currency = {
  ...{ paymentId: 6, name: 'USDT', usdRate: '1', network: 'TRC-20', chain: 'Tron' },
  ...{ minimum: '5', maximum: '1000', decimals: 6, fee: '1', contract: OTHER_TRON },
};
const NEW_COIN: Currency = { paymentId: 7, name: 'NEW', usdRate: '1', network: 'Something new' };
const HOUR_MS = 3_600_000;

let aheadMs: number;
let producer: PayoutProducer;
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const open = (options: Partial<PayoutProducerOptions> = {}): PayoutProducer =>
  openProducer({ connection: account.redis, clock, ...options });

useProducer();
beforeEach(() => {
  aheadMs = 0;
  producer = open();
});

async function publish(currencies: readonly Currency[] = [USDT, NEW_COIN], ageMs = 0): Promise<void> {
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: Date.now() - ageMs, isWhole: true });
}

let nextId = 0;
async function enqueue(changes: Partial<ReturnType<typeof payoutInput>> = {}): Promise<string> {
  try {
    await producer.enqueue(
      payoutInput({ payoutId: `p-${(nextId += 1)}`, paymentId: 6, amount: '10', addressTo: TRON, ...changes }),
    );
    return 'taken';
  } catch (error) {
    return (error as Error).message;
  }
}

it('an address of another network than its currency is refused, naming both; an unknown network passes', async () => {
  await publish();
  expect(await enqueue({ addressTo: BTC })).toBe(
    `addressTo: is an address of Bitcoin, but the gateway pays USDT on Tron: copy it again from where it comes from (got "${BTC}")`,
  );
  expect(await enqueue({ addressTo: 'TXYZop' })).toContain('is no address of Tron, on which the gateway pays USDT');
  expect(await enqueue()).toBe('taken');
  for (const addressTo of [BTC, TRON, 'anything']) expect(await enqueue({ addressTo, paymentId: 7 })).toBe('taken');
  const many = producer.enqueueMany([payoutInput({ paymentId: 6, amount: '10', addressTo: BTC })]);
  await expect(many).rejects.toThrow('[0].addressTo: is an address of Bitcoin');
  producer = open({ checkAddresses: false });
  expect(await enqueue({ addressTo: BTC })).toBe('taken');
});

it("a contract of the gateway's list is no recipient, of any currency", async () => {
  await publish();
  for (const paymentId of [6, 7]) {
    expect(await enqueue({ addressTo: OTHER_TRON, paymentId })).toContain('is the contract of USDT, from which no one');
  }
});

it.each([
  ['4.99', "amount: must be at least 5, the gateway's minimum of USDT (got 4.99)"],
  ['1000.5', "amount: must be at most 1000, the gateway's maximum of USDT (got 1000.5)"],
  ['5.1234567', 'amount: must have at most 6 decimal places, as the gateway pays USDT (got 5.1234567)'],
  ['5', 'taken'],
  ['1000', 'taken'],
  ['5.123456', 'taken'],
])('an amount of %s against the limits of the list', async (amount, answer) => {
  await publish();
  expect(await enqueue({ amount })).toBe(answer);
  // With a symbol, the amount may be in another currency.
  expect(await enqueue({ amount, symbol: 'USD' })).toBe('taken');
  producer = open({ checkPaymentIds: false });
  expect(await enqueue({ amount })).toBe('taken');
});

it('limits of a list that is older than a day do not count', async () => {
  await publish([USDT], 25 * HOUR_MS);
  expect(await enqueue({ amount: '1' })).toBe('taken');
});

it('a refusal has the worker read the list again, and a repeated call is answered as before', async () => {
  const first = payoutInput({ payoutId: 'early', paymentId: 6, amount: '1', addressTo: BTC });
  await producer.enqueue(first);
  await publish();
  aheadMs += 61_000;
  expect(await enqueue({ addressTo: BTC })).toContain('is an address of Bitcoin');
  expect(await producer.enqueue(first)).toMatchObject({ created: false });
  aheadMs += 11_000;
  expect(await enqueue({ addressTo: BTC })).toContain('is an address of Bitcoin');
  expect(await takeCurrenciesRequest(account.connection)).toBe(true);
});

it('a producer that started before the first list checks by it a second after it came', async () => {
  expect(await enqueue({ addressTo: BTC })).toBe('taken');
  await publish();
  aheadMs += 1_100;
  const answers = await Promise.all([enqueue({ addressTo: BTC }), enqueue({ addressTo: BTC }), enqueue()]);
  expect(answers).toEqual([expect.stringContaining('Bitcoin'), expect.stringContaining('Bitcoin'), 'taken']);
});

it('requireCurrencies refuses everything without a list, or with one older than a day', async () => {
  producer = open({ requireCurrencies: true });
  expect(await enqueue()).toMatch(/^paymentId: cannot be checked: no worker has published the gateway's list/);
  await publish([USDT], 25 * HOUR_MS);
  aheadMs += 1_100;
  expect(await enqueue()).toMatch(/^paymentId: cannot be checked: no worker has published for a day/);
  await publish();
  aheadMs += 11_000;
  expect(await enqueue()).toBe('taken');
});
