import { describe, expect, it } from '@jest/globals';
import {
  paymentWalletRequestSchema,
  toFormFields,
  transactionStatusRequestSchema,
  withdrawRequestSchema,
} from '../../src/gateway/schemas.js';

describe('what a caller gives', () => {
  const WITHDRAW = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

  it.each([
    [withdrawRequestSchema, WITHDRAW],
    [withdrawRequestSchema, { ...WITHDRAW, symbol: 'USD' }],
    [transactionStatusRequestSchema, { txhash: 'abc' }],
    [paymentWalletRequestSchema, { paymentId: 7, orderId: 'o-1' }],
  ])('is taken as it is', (schema, given) => {
    expect(schema.parse(given)).toEqual(given);
    expect(schema.safeParse({ ...given, another: 1 }).success).toBe(false);
    for (const name of Object.keys(given).filter((field) => field !== 'symbol')) {
      expect(schema.safeParse({ ...given, [name]: undefined }).success).toBe(false);
    }
  });
});

describe('toFormFields', () => {
  it('names the fields as the document does, in its order, and leaves out what is not there', () => {
    const data = { symbol: 'USD', addressTo: 'w', amount: '1', platformId: 42, paymentId: 7 };
    expect(Object.entries(toFormFields('withdraw', data))).toEqual([
      ['payment_id', 7],
      ['platform_id', 42],
      ['amount', '1'],
      ['address_to', 'w'],
      ['symbol', 'USD'],
    ]);
    expect(toFormFields('withdraw', { platformId: 42, amount: '1' })).toEqual({ platform_id: 42, amount: '1' });
    expect(toFormFields('balance', { platformId: 42, amount: '1' })).toEqual({ platform_id: 42 });
  });
});
