import { describe, expect, it } from '@jest/globals';
import { compareBalance } from '../../src/ledger/reads/balance-cover.js';

const currencies = [
  { paymentId: 1, name: 'BTC', usdRate: '64250.5' },
  { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
  { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
  { paymentId: 9, name: 'TRX', usdRate: undefined },
];
const sum = (paymentId: number, amount: string) => ({ paymentId, symbol: undefined, count: 1, amount });
const of = (amount: string, more = {}) => ({ paymentId: undefined, symbol: undefined, amount, ...more });
const QUEUED = [sum(1, '0.002'), sum(6, '100'), sum(7, '50.000000000000000001')];

describe('a balance', () => {
  it.each([
    ['of a currency', of('0.001', { paymentId: 1 }), 'BTC', '0.002', false],
    ['of a currency, exactly enough', of('0.002', { paymentId: 1 }), 'BTC', '0.002', true],
    ['of a currency that nobody is paid in', of('0', { paymentId: 9 }), 'TRX', '0', true],
    ['of a code of several currencies', of('150', { symbol: 'USDT' }), 'USDT', '150.000000000000000001', false],
    ['of the account', of('1000'), 'USD', '278.501000000000000001', true],
    ['in USD', of('278.501', { symbol: 'USD' }), 'USD', '278.501000000000000001', false],
    ['in a symbol that is not known', of('0', { symbol: 'EUR' }), 'EUR', undefined, true],
  ])('%s is compared with what is queued', (_, balance, currency, queued, isEnough) => {
    expect(compareBalance({ balance: [balance], currencies }, QUEUED)).toEqual([
      { currency, balance: balance.amount, queued, isEnough },
    ]);
  });

  it('of the account is compared with nothing where a rate is missing', () => {
    const [cover] = compareBalance({ balance: [of('1')], currencies }, [...QUEUED, sum(9, '5')]);
    expect(cover).toMatchObject({ queued: undefined, isEnough: true });
  });
});
