import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { ENDPOINTS, toPackageName, type EndpointName } from '../../src/gateway/endpoints.js';
import { encodeForm, type FormFields, signForm, toFormFields } from '../../src/gateway/signing.js';

interface Vector {
  endpoint: `/${EndpointName}`;
  secretKey: string;
  fields: FormFields;
  payload: string;
  hash: string;
}

// Made with PHP's http_build_query and hash_hmac, which the gateway is assumed to use.
const vectors = JSON.parse(readFileSync(new URL('signature-vectors.json', import.meta.url), 'utf8')) as Vector[];

describe('the signature vectors made with PHP', () => {
  it('cover all five endpoints', () => {
    expect(new Set(vectors.map((vector) => vector.endpoint.slice(1)))).toEqual(new Set(Object.keys(ENDPOINTS)));
  });

  it.each(vectors)('$endpoint, $payload', ({ endpoint, secretKey, fields, payload, hash }) => {
    expect(encodeForm(fields)).toBe(payload);
    expect(signForm(payload, secretKey)).toBe(hash);
    const { signedFields } = ENDPOINTS[endpoint.slice(1) as EndpointName];
    expect(encodeForm(toFormFields(signedFields, fromApiNames(fields)))).toBe(payload);
  });
});

describe('encodeForm', () => {
  it('escapes every byte except letters, digits and - _ . as PHP does', () => {
    const kept = /^[A-Za-z0-9\-_.]$/;
    for (let code = 0x21; code < 0x7f; code += 1) {
      const character = String.fromCharCode(code);
      const escaped = `%${code.toString(16).toUpperCase()}`;
      expect(encodeForm({ x: character })).toBe(`x=${kept.test(character) ? character : escaped}`);
    }
    expect(encodeForm({ x: ' ', y: 'ключ' })).toBe('x=+&y=%D0%BA%D0%BB%D1%8E%D1%87');
  });
});

/** In another order than the API's, so that the client has to produce the order of the payload. */
function fromApiNames(fields: FormFields): object {
  const entries = Object.entries(fields).map(([name, value]) => [toPackageName(name), value] as const);
  return Object.fromEntries(entries.reverse());
}
