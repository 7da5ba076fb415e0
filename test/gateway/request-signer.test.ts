import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { createRequestSigner } from '../../src/gateway/request-signer.js';

const sign = createRequestSigner(42, 'the-key');
const hashOf = (payload: string): string => createHmac('sha256', 'the-key').update(payload).digest('hex');

describe('createRequestSigner', () => {
  it('posts the signed payload as it is, with the hash behind it', () => {
    const payload = 'platform_id=42&txhash=abc';
    expect(sign('transactionstatus', { txhash: 'abc' }).body).toBe(`${payload}&hash=${hashOf(payload)}`);
  });

  it('takes the signature out of a text wherever it stands, in either case', () => {
    const { redact } = sign('balance', {});
    const hash = hashOf('platform_id=42');
    expect(redact(`bad hash ${hash}, not ${hash.toUpperCase()}!`)).toBe('bad hash [hash], not [hash]!');
    expect(redact('nothing to hide')).toBe('nothing to hide');
  });

  it('shows the key to nobody who looks at it or at a request', () => {
    const request = sign('balance', {});
    expect(inspect([sign, request], { showHidden: true, depth: 9 }) + JSON.stringify([sign, request])).not.toContain(
      'the-key',
    );
  });
});
