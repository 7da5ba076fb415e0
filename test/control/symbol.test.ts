import { expect, it } from '@jest/globals';
import type { RateAnchor } from '../../src/ledger/control-record.js';
import { DEFAULT_USD } from '../../src/control/policy/policy.js';
import { UsdRates } from '../../src/control/policy/usd-rates.js';
import { HOURLY, policyOf, PolicyRig, TestClock } from './support/policy-rig.js';

/** With a symbol, a payout's amount may be in that currency or in its own. Under any cap the larger reading counts. */

const XRP = 4;
const RATES: readonly (readonly [number, string])[] = [
  [XRP, '0.5'],
  [1, '64250.5'],
  [6, '1'],
];

function know(rates: UsdRates, now: number): void {
  const anchors = new Map<number, RateAnchor>(RATES.map(([id, rate]) => [id, { rate, at: 0 }]));
  rates.update(RATES, anchors, { now, wallNow: 0 });
}

it.each([
  ['400 of a coin worth less than a dollar', XRP, '400', 'USD', '400000000', '800'],
  ['400 of a coin worth more', 1, '400', 'USD', '25700200000000', '400'],
  ['400 of a coin worth a dollar', 6, '400', 'USD', '400000000', '400'],
  ['a third of a coin is rounded up', XRP, '0.000000000000000001', 'USD', '1', '0.000000000000000002'],
  ['no symbol', XRP, '400', undefined, '200000000', '400'],
])('%s', (_, paymentId, amount, symbol, micros, coins) => {
  const rates = new UsdRates(DEFAULT_USD);
  know(rates, 0);
  expect(rates.valueOf({ paymentId, amount, symbol }, 0)).toEqual({
    worth: { kind: 'known', micros: BigInt(micros) },
    coins,
  });
});

it.each([
  ['its symbol has no rate', { paymentId: XRP, amount: '1', symbol: 'EUR' }, /may be in EUR, whose rate is not known/],
  ['its currency has no rate', { paymentId: 99, amount: '1', symbol: 'USD' }, /no rate of currency 99/],
])('is not known if %s', (_, payment, reason) => {
  const rates = new UsdRates(DEFAULT_USD);
  know(rates, 0);
  const { worth, coins } = rates.valueOf(payment, 0);
  expect([worth, coins]).toMatchObject([
    { kind: 'unknown', reason: expect.stringMatching(reason) },
    { reason: expect.stringMatching(reason) },
  ]);
});

function openRig(...rules: readonly object[]): PolicyRig {
  const rig = new PolicyRig(new TestClock(), policyOf(...rules));
  know(rig.authority.rates, rig.clock.now());
  return rig;
}

const IN_DOLLARS = { paymentId: XRP, symbol: 'USD' };

it('a cap in dollars, and one in the currency, hold what only the other reading lets pass', () => {
  const dollars = openRig({ name: 'each', cap: { usd: '300' }, over: 'refuse' });
  expect(dollars.askFor('a', '400', { paymentId: XRP })).toBe('send');
  expect(dollars.askFor('b', '400', IN_DOLLARS)).toMatch(/^refuse: .* it is 400\.00 USD, more than 300\.00 USD/);
  expect(dollars.askFor('c', '400', { paymentId: XRP, symbol: 'EUR' })).toMatch(/^wait: .*may be in EUR/);
  const amounts = openRig({ name: 'each', when: { paymentId: ['4'] }, cap: { amount: '500' }, over: 'refuse' });
  expect(amounts.askFor('a', '400', { paymentId: XRP })).toBe('send');
  expect(amounts.askFor('b', '400', IN_DOLLARS)).toMatch(/^refuse: .* it is 800, more than 500/);
});

it.each([
  ['dollars', { name: 'hour', cap: { usd: '500', within: '1h' }, over: 'wait' }, '60'],
  ['the currency', { ...HOURLY, when: { paymentId: ['4'] }, cap: { amount: '1000', within: '1h' } }, '150'],
])('a window in %s counts a send by the larger reading, also after a restart', async (_, rule, more) => {
  const rig = openRig(rule);
  const first = rig.payout('a', '450', IN_DOLLARS);
  expect(await rig.begin(first)).toBeDefined();
  expect(rig.askFor('b', more, { paymentId: XRP, symbol: 'USD' })).toMatch(/^wait: /);
  rig.restart();
  know(rig.authority.rates, rig.clock.now());
  expect(rig.askFor('b', more, { paymentId: XRP, symbol: 'USD' })).toMatch(/^wait: /);
  rig.authority.leave('b');
  expect(rig.askFor('c', '40', { paymentId: XRP })).toBe('send');
});

it('what was noted at the begin counts, also where a rate is not known any more', async () => {
  const rule = { ...HOURLY, when: { paymentId: ['4'] }, cap: { amount: '1000', within: '1h' } };
  const rig = openRig(rule);
  expect(await rig.begin(rig.payout('a', '450', IN_DOLLARS))).toBeDefined();
  rig.restart();
  expect(rig.askFor('b', '200', { paymentId: XRP })).toMatch(/900 of 1,000 of currency 4 are spent/);
});
