import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { createRequestSigner, toFormFields } from '../../src/gateway/signing.js';

const sign = createRequestSigner(42, 'the-key');
const hashOf = (payload: string): string => createHmac('sha256', 'the-key').update(payload).digest('hex');

describe('createRequestSigner', () => {
  it('posts the signed payload as it is, followed by the hash', () => {
    const payload = 'platform_id=42&txhash=abc';
    expect(sign(['platform_id', 'txhash'], { txhash: 'abc' }).body).toBe(`${payload}&hash=${hashOf(payload)}`);
  });

  it('removes the signature from a text wherever it occurs, in either case', () => {
    const { redact } = sign(['platform_id'], {});
    const hash = hashOf('platform_id=42');
    expect(redact(`bad hash ${hash}, not ${hash.toUpperCase()}!`)).toBe('bad hash [hash], not [hash]!');
    expect(redact('nothing to hide')).toBe('nothing to hide');
  });

  it('shows the key neither in itself nor in a request', () => {
    const request = sign(['platform_id'], {});
    expect(inspect([sign, request], { showHidden: true, depth: 9 }) + JSON.stringify([sign, request])).not.toContain(
      'the-key',
    );
  });
});

describe('toFormFields', () => {
  const SIGNED = ['payment_id', 'platform_id', 'amount', 'address_to', 'symbol'];

  it("uses the API's names and order, and leaves out what has no value", () => {
    const values = { symbol: 'USD', addressTo: 'w', amount: '1', platformId: 42, paymentId: 7 };
    expect(Object.entries(toFormFields(SIGNED, values))).toEqual([
      ['payment_id', 7],
      ['platform_id', 42],
      ['amount', '1'],
      ['address_to', 'w'],
      ['symbol', 'USD'],
    ]);
    expect(toFormFields(SIGNED, { platformId: 42, amount: '1' })).toEqual({ platform_id: 42, amount: '1' });
    expect(toFormFields(['platform_id'], { platformId: 42, amount: '1' })).toEqual({ platform_id: 42 });
  });
});
