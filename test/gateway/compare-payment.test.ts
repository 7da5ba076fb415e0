import { describe, expect, it } from '@jest/globals';
import { comparePayment, describeDifferences } from '../../src/gateway/compare-payment.js';

const PAYMENT = { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123' };

describe('comparePayment', () => {
  it('finds no difference in equal data', () => {
    expect(comparePayment({ ...PAYMENT }, PAYMENT)).toEqual([]);
  });

  it('names each field that differs, with both values', () => {
    const differences = comparePayment({ paymentId: 11, amount: '15', addressTo: 'r:1' }, PAYMENT);
    expect(differences).toEqual([
      { field: 'paymentId', actual: 11, expected: 10 },
      { field: 'addressTo', actual: 'r:1', expected: PAYMENT.addressTo },
      { field: 'amount', actual: '15', expected: '1.5' },
    ]);
    expect(describeDifferences(differences.slice(2))).toBe('amount is 15 at the gateway, 1.5 in the payout');
  });

  it('distinguishes an absent field from a different value', () => {
    const differences = comparePayment({ amount: '1.5' }, PAYMENT);
    expect(differences.map(({ field, actual }) => [field, actual])).toEqual([
      ['paymentId', undefined],
      ['addressTo', undefined],
    ]);
    expect(describeDifferences(differences.slice(0, 1))).toBe('paymentId is missing at the gateway, 10 in the payout');
  });
});

describe('what a gateway may write otherwise', () => {
  it.each([
    ['BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    ['bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a', 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF', 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA'],
    ['rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:00123', 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123'],
  ])('the address %s as %s', (addressTo, actual) => {
    expect(comparePayment({ ...PAYMENT, addressTo: actual }, { ...PAYMENT, addressTo })).toEqual([]);
  });

  it.each([
    ['12.3', '12.300000000000001'],
    ['0.1', '0.10000000000000001'],
    ['29.95', '29.949999999999999'],
    ['277.2', '277.19999999999999'],
  ])('the amount %s as the number %s, never as a string', (amount, actual) => {
    expect(comparePayment({ ...PAYMENT, amount: actual, isAmountNumber: true }, { ...PAYMENT, amount })).toEqual([]);
    expect(comparePayment({ ...PAYMENT, amount: actual }, { ...PAYMENT, amount })).toHaveLength(1);
  });

  it.each([
    ['12.3', '12.300000000000003'],
    ['12.3', '12.31'],
    ['0.1', '0'],
    ['1', '10'],
  ])('not the amount %s as the number %s', (amount, actual) => {
    const [difference] = comparePayment({ ...PAYMENT, amount: actual, isAmountNumber: true }, { ...PAYMENT, amount });
    expect(difference).toEqual({ field: 'amount', actual, expected: amount });
  });
});
