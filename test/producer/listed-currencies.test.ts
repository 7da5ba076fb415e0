import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { InvalidInputError } from '../../src/base/errors.js';
import type { PayoutProducer } from '../../src/control/payout-producer.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { takeCurrenciesRequest, writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { account } from '../ledger/support/use-account.js';
import { payoutInput } from './support/payout-input.js';
import { openProducer, useProducer } from './support/use-producer.js';

const HOUR_MS = 3_600_000;
const LISTED = [
  { paymentId: 1, name: 'BTC', usdRate: undefined },
  { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
];

let aheadMs: number;
let producer: PayoutProducer;
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const open = (checkPaymentIds?: boolean): PayoutProducer =>
  openProducer({ connection: account.redis, clock, checkPaymentIds });

useProducer();
beforeEach(() => {
  aheadMs = 0;
  producer = open();
});

async function publish(currencies = LISTED, ageMs = HOUR_MS): Promise<void> {
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: Date.now() - ageMs, isWhole: true });
}

const enqueue = async (paymentId: number, payoutId = 'p-1') => producer.enqueue(payoutInput({ payoutId, paymentId }));

describe('a payment id that the gateway does not list', () => {
  it('is refused with the list, its time and what to do, by its index among many, and nothing is enqueued', async () => {
    await publish();
    await expect(enqueue(7)).rejects.toThrow(
      /must be in the gateway's list of \d{4}-.*Z: 1 BTC, 6 USDT \(TRC-20\) \(got 7\)\. If the gateway has it since, repeat/,
    );
    await expect(enqueue(7)).rejects.toBeInstanceOf(InvalidInputError);
    const inputs = [7, 6, 8].map((paymentId, index) => payoutInput({ payoutId: `p-${index}`, paymentId }));
    await expect(producer.enqueueMany(inputs)).rejects.toThrow(/\[0\]\.paymentId: .*\(got 7\).*\[2\]\.paymentId: /);
    expect((await producer.stats()).queued).toBe(0);
  });

  it('is answered as before when the payout exists, and when retention has removed it', async () => {
    await enqueue(7, 'there');
    await enqueue(7, 'gone');
    await producer.cancel('gone');
    expect(await removePayouts(account.connection, 'cancelled', account.clock.wallNow() + HOUR_MS, 10)).toHaveLength(1);
    await publish();
    await producer.close();
    producer = open();
    expect(await enqueue(7, 'there')).toEqual({ payoutId: 'there', state: 'queued', created: false });
    await expect(enqueue(7, 'gone')).rejects.toThrow('was cancelled and has been removed');
    await expect(enqueue(7, 'new')).rejects.toThrow('paymentId');
  });

  const store = async (text: string): Promise<unknown> =>
    account.redis.hset(account.connection.keys.gateway, 'currencies', text);

  it.each<[string, () => Promise<unknown>, boolean?]>([
    ['before a worker has published a list', async () => Promise.resolve()],
    ['if the list is older than a day', async () => publish(LISTED, 25 * HOUR_MS)],
    ['if something else is there', async () => store('{"currencies":7,"isWhole":true}')],
    ['if that is no JSON', async () => store('{')],
    ['if the check is switched off', async () => publish(), false],
  ])('is accepted %s', async (_, prepare, checkPaymentIds = true) => {
    await prepare();
    producer = open(checkPaymentIds);
    expect(await enqueue(7)).toMatchObject({ created: true });
  });

  it('is asked of the worker, and accepted once it is listed', async () => {
    await publish();
    expect(await enqueue(6)).toMatchObject({ created: true });
    aheadMs += 11_000;
    await expect(enqueue(7, 'p-2')).rejects.toThrow('(got 7)');
    expect(await takeCurrenciesRequest(account.connection)).toBe(true);
    await expect(enqueue(7, 'p-2')).rejects.toThrow('(got 7)');
    // One request is enough for all refusals of ten seconds.
    expect(await takeCurrenciesRequest(account.connection)).toBe(false);
    await publish([...LISTED, { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' }], 0);
    aheadMs += 11_000;
    expect(await enqueue(7, 'p-2')).toMatchObject({ created: true });
  });
});
