import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import { ENDPOINTS, toPackageName } from '../../src/gateway/endpoints.js';

const WITHDRAW = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

describe.each(Object.entries(ENDPOINTS))('the row of %s', (name, { path, signedFields, request }) => {
  it('has its own path', () => {
    expect(path).toBe(name);
  });

  it('signs every field of the request, and the account', () => {
    const inRequest = Object.keys(request.shape);
    expect(signedFields.map(toPackageName).sort()).toEqual([...inRequest, 'platformId'].sort());
  });
});

describe('a request', () => {
  it.each<[string, z.ZodType, object]>([
    ['withdraw', ENDPOINTS.withdraw.request, WITHDRAW],
    ['withdraw with a symbol', ENDPOINTS.withdraw.request, { ...WITHDRAW, symbol: 'USD' }],
    ['transactionstatus', ENDPOINTS.transactionstatus.request, { txhash: 'abc' }],
    ['getpaymentwallet', ENDPOINTS.getpaymentwallet.request, { paymentId: 7, orderId: 'o-1' }],
  ])('%s takes exactly its fields', (_name, schema, given) => {
    expect(schema.parse(given)).toEqual(given);
    expect(schema.safeParse({ ...given, another: 1 }).success).toBe(false);
    for (const name of Object.keys(given).filter((field) => field !== 'symbol')) {
      expect(schema.safeParse({ ...given, [name]: undefined }).success).toBe(false);
    }
  });
});

describe('the differing fields of an accepted withdrawal', () => {
  const request = { paymentId: 10, amount: '1.5', addressTo: 'abc:1' };
  const differing = (fields: object) =>
    ENDPOINTS.withdraw.parseResult(fields as Readonly<Record<string, unknown>>, request).differing;

  it('are none where only the notation differs, or fields are absent', () => {
    expect(differing({ payment_id: '10', amount: '1.50', address_to: 'abc:1' })).toEqual([]);
    expect(differing({})).toEqual([]);
    expect(differing({ payment_id: null, amount: null, address_to: null })).toEqual([]);
  });

  it('have the names of the API', () => {
    const fields = { payment_id: '11', amount: '15', address_to: 'abc' };
    expect(differing(fields)).toEqual(['payment_id', 'amount', 'address_to']);
    expect(differing({ payment_id: 'x', amount: 'y' })).toEqual(['payment_id', 'amount']);
  });
});
