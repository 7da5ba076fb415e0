import { expect, it } from '@jest/globals';
import { groupSends, sumFor } from '../../../src/worker/reconciliation/send-sums.js';
import { toUnits } from '../../../src/base/decimal.js';

const CURRENCIES = [{ paymentId: 4, name: 'XRP', usdRate: '0.5' }];

/** The most that one send of 400 can have taken from the balance. */
function mostOf(balance: { paymentId?: number; symbol?: string }, symbol: string | undefined): string | undefined {
  const named = { paymentId: balance.paymentId, symbol: balance.symbol };
  const debit = { paymentId: 4, symbol, amount: '400', fee: '0', rate: toUnits('0.5') };
  const view = { balance: named, all: [named], currencies: CURRENCIES };
  return sumFor(view, groupSends([debit], new Map())).high;
}

it('a send with a symbol may have taken the larger of both readings of its amount', () => {
  expect(mostOf({ paymentId: 4 }, undefined)).toBe('400');
  expect(Number(mostOf({ paymentId: 4 }, 'USD'))).toBeGreaterThanOrEqual(800);
  expect(Number(mostOf({ symbol: 'USD' }, undefined))).toBeLessThan(221);
  expect(Number(mostOf({ symbol: 'USD' }, 'USD'))).toBeGreaterThanOrEqual(400);
});

it('what a send with a symbol of no rate has taken is not known', () => {
  expect(mostOf({ paymentId: 4 }, 'EUR')).toBeUndefined();
});
