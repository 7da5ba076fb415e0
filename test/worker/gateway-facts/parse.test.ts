import { describe, expect, it } from '@jest/globals';
import { parseBalance, parseCurrencies } from '../../../src/worker/keep-gateway-facts.js';

const USDT = [
  { payment_id: 6, currency: 'USDT', name: 'Tether (TRC-20)', network: 'Tron', rate_usd: '1' },
  { payment_id: 7, currency: 'USDT', name: 'Tether (ERC-20)', network: 'Ethereum', rate_usd: '1' },
];

describe('currencies', () => {
  it('have the code as their name, with the network where several share it', () => {
    const list = [
      ...USDT,
      { payment_id: 1, currency: 'BTC', name: 'Bitcoin', network: 'Bitcoin', rate_usd: '64250.5' },
    ];
    expect(parseCurrencies(list)).toEqual([
      { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
      { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
      { paymentId: 1, name: 'BTC', usdRate: '64250.5' },
    ]);
  });

  it.each([
    [
      { id: 6, code: 'USDT', rate: 1.5e-7 },
      { paymentId: 6, name: 'USDT', usdRate: '0.00000015' },
    ],
    [
      { ID: '6', Ticker: 'USDT' },
      { paymentId: 6, name: 'USDT', usdRate: undefined },
    ],
    [
      { paymentId: 6, name: 'Tether\n', price_usd: '0' },
      { paymentId: 6, name: 'Tether', usdRate: undefined },
    ],
    [
      { currency_id: '6', coin: 'USDT', usd: '-1' },
      { paymentId: 6, name: 'USDT', usdRate: undefined },
    ],
  ])('are understood as %j', (item, currency) => {
    expect(parseCurrencies([item])).toEqual([currency]);
  });

  it.each([[{}], [{ id: 6 }], [{ name: 'USDT' }], [{ id: 'x', name: 'USDT' }], [{ id: 1.5, name: 'USDT' }]])(
    'are not made of %j',
    (item) => {
      expect(parseCurrencies([item])).toEqual([]);
    },
  );
});

describe('a balance', () => {
  const currencies = parseCurrencies([...USDT, { id: 1, code: 'BTC' }]);
  const of = (amount: string, more = {}) => ({ paymentId: undefined, symbol: undefined, amount, ...more });

  it.each([
    ['1000000.50', [of('1000000.5')]],
    [12.5, [of('12.5')]],
    [-3, [of('0')]],
    [{ amount: '5', currency: 'USD' }, [of('5', { symbol: 'USD' })]],
    [{ available: 5 }, [of('5')]],
    [{ BTC: '0.5', USD: 7 }, [of('0.5', { paymentId: 1 }), of('7', { symbol: 'USD' })]],
    [{ 1: '0.5', 6: { balance: '9' } }, [of('0.5', { paymentId: 1 }), of('9', { paymentId: 6 })]],
    [{ USDT: '7' }, [of('7', { symbol: 'USDT' })]],
    [
      [
        { payment_id: 6, balance: '7' },
        { code: 'BTC', value: '1' },
      ],
      [of('7', { paymentId: 6 }), of('1', { paymentId: 1 })],
    ],
    [[], []],
  ])('is understood as %j', (balance, parsed) => {
    expect(parseBalance(balance, currencies)).toEqual(parsed);
  });

  it.each([[true], ['plenty'], [null], [{ currency: 'USD' }], [['1', '2']], [{ a: { b: { c: 1 } } }]])(
    'is not understood as %j',
    (balance) => {
      expect(parseBalance(balance, currencies)).toBeUndefined();
    },
  );
});
