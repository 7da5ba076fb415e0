import { describe, expect, it } from '@jest/globals';
import { comparePayment, describeDifferences, isSameAddress } from '../../src/gateway/compare-payment.js';

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

describe('isSameAddress', () => {
  it.each([
    ['rEb8:123', 'rEb8:123'],
    // The same account: EIP-55 puts a checksum into the case of the digits.
    ['0x52908400098527886E0F7030069857D2E4169EE7', '0x52908400098527886e0f7030069857d2e4169ee7'],
    ['0Xab', '0xAB'],
  ])('%s and %s', (one, other) => {
    expect(isSameAddress(one, other)).toBe(true);
    expect(isSameAddress(other, one)).toBe(true);
  });

  it.each([
    ['1BoatSLRHtKNngkdXEeobR76b53LETtpyT', '1boatslrhtknngkdxeeobr76b53lettpyt'],
    ['rEb8:123', 'rEb8'],
    ['rEb8:123', 'rEb8:0123'],
    ['rEb8:tag', 'rEb8:TAG'],
    ['0xab:tag', '0xAB:TAG'],
    ['0xab', '0xac'],
    ['0xab', 'ab'],
    ['abc', 'abc '],
  ])('not %s and %s', (one, other) => {
    expect(isSameAddress(one, other)).toBe(false);
    expect(isSameAddress(other, one)).toBe(false);
  });
});
