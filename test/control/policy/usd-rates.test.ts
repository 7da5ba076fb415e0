import { beforeEach, describe, expect, it } from '@jest/globals';
import { UsdRates } from '../../../src/control/policy/usd-rates.js';
import { formatMicros } from '../../../src/control/policy/usd.js';

const MINUTE_MS = 60_000;

let rates: UsdRates;
beforeEach(() => {
  rates = new UsdRates({ maxAgeMs: 15 * MINUTE_MS, maxMovePercent: 25, pinned: new Map([[6, '1']]) });
});

const worth = (paymentId: number, amount: string, minute: number): string => {
  const found = rates.worthOf(paymentId, amount, minute * MINUTE_MS);
  return found.kind === 'known' ? formatMicros(found.micros) : found.reason;
};
const update = (rate: string, minute: number): void => {
  rates.update([[10, rate]], minute * MINUTE_MS);
};

describe('what a currency is worth', () => {
  it('is what the policy pins, whatever the gateway says', () => {
    rates.update([[6, '0.01']], 0);
    expect(worth(6, '12.5', 99)).toBe('12.50');
  });

  it('is unknown before the gateway said it, and once that is too old', () => {
    expect(worth(10, '1', 0)).toBe('the gateway has named no rate of currency 10');
    update('60000', 0);
    expect(worth(10, '0.000000001', 15)).toBe('0.00006');
    expect(worth(10, '1', 16)).toBe('the rate of currency 10 is 16 min old');
  });

  it('is never rounded down', () => {
    update('0.0000001', 0);
    expect(worth(10, '1', 0)).toBe('0.000001');
  });

  it.each([
    ['75000', '75000.00'],
    ['45000', '45000.00'],
    ['75000.01', /moved by more than 25% 0 min ago/],
    ['44999.99', /moved by more than 25%/],
  ])('after 60000 and then %s is %s', (rate, expected) => {
    update('60000', 0);
    update(rate, 5);
    expect(worth(10, '1', 5)).toMatch(expected);
  });

  it('counts again once it has stood where it jumped to', () => {
    update('60000', 0);
    for (const minute of [5, 10, 15, 20]) update('6000', minute);
    expect(worth(10, '1', 19)).toMatch(/moved by more than 25% 14 min ago/);
    expect(worth(10, '1', 20)).toBe('6000.00');
  });
});
