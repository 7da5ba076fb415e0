import { describe, expect, it } from '@jest/globals';
import { amountField } from '../src/base/fields.js';
import {
  formatAlternatives,
  formatAmount,
  formatCount,
  formatCurrency,
  formatDuration,
  formatMoney,
  formatMs,
  formatState,
  formatTime,
  formatTimeUtc,
  shorten,
} from '../src/base/format.js';

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

it.each([
  [[], ''],
  [['queued'], 'queued'],
  [['queued', 'held'], 'queued or held'],
  [['queued', 'held', 'rejected'], 'queued, held or rejected'],
])('names the alternatives %j', (names, text) => {
  expect(formatAlternatives(names)).toBe(text);
});

describe('shorten', () => {
  it.each([
    [ADDRESS, 'TXYZop…VkAeBf'],
    [`${ADDRESS}:123456789012345`, 'TXYZop…VkAeBf:123456789012345'],
    ['1234567890123', '1234567890123'],
    ['12345678901234', '123456…901234'],
    ['', ''],
  ])('%j as %j', (text, short) => {
    expect(shorten(text)).toBe(short);
  });
});

describe('formatTime', () => {
  it('drops the fraction of a second, and names the time zone only where it is asked to', () => {
    expect(formatTime('2030-01-31T09:00:00.123Z')).toBe('2030-01-31 09:00:00');
    expect(formatTime('2030-01-31T09:00:00Z')).toBe('2030-01-31 09:00:00');
    expect(formatTimeUtc('2030-01-31T09:00:00.123Z')).toBe('2030-01-31 09:00:00 UTC');
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [3_600_000, '1 h 0 min'],
    [12_000_000, '3 h 20 min'],
    [86_400_000, '1 d 0 h'],
    [100_000_000, '1 d 3 h'],
  ])('%d ms as %j', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

it('writes counts, milliseconds, states and currencies', () => {
  expect([0, 1, 2, 1_216].map((count) => formatCount(count, 'payout'))).toEqual([
    '0 payouts',
    '1 payout',
    '2 payouts',
    '1,216 payouts',
  ]);
  expect(formatMs(999.9)).toBe('999 ms');
  expect(formatState('in_progress')).toBe('in progress');
  expect([formatCurrency({ paymentId: 6 }), formatCurrency({ paymentId: 6, symbol: 'USD' })]).toEqual(['6', '6/USD']);
});

it('an amount has its currency by name where that is known, else by its id', () => {
  const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)' }];
  expect(formatMoney('1077', 6, currencies)).toBe('1,077 USDT (TRC-20)');
  expect(formatMoney('0.5', 7, currencies)).toBe('0.5 (payment_id 7)');
});

describe('formatAmount', () => {
  it.each([
    ['0', '0'],
    ['999', '999'],
    ['1000', '1,000'],
    ['-1234567.5', '-1,234,567.5'],
    ['123456.123456789012345678', '123,456.123456789012345678'],
    ['0.1234567890123456789', '0.123456789012345678…'],
    ['0.1234567890123456780', '0.123456789012345678'],
    ['0.0000000000000000001', '0.000000000000000000…'],
  ])('%s as %s: no digit is rounded, and a cut one is told', (amount, text) => {
    expect(formatAmount(amount)).toBe(text);
    expect(formatAmount(amount, 'USD')).toBe(`${text} USD`);
  });

  it('a copied amount is refused where it would be paid, not read as another', () => {
    expect(amountField.safeParse(formatAmount('1234')).success).toBe(false);
    expect(amountField.safeParse(formatAmount('1234567.5')).success).toBe(false);
  });
});
