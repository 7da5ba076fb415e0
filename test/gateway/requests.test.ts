import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { comparePayment, describeDifferences } from '../../src/gateway/compare-payment.js';
import { ENDPOINTS, toPackageName, type EndpointName } from '../../src/gateway/endpoints.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../../src/gateway/payment-fields.js';
import { createRequestSigner, encodeForm, type FormFields, signForm, toFormFields } from '../../src/gateway/signing.js';

interface Vector {
  endpoint: `/${EndpointName}`;
  secretKey: string;
  fields: FormFields;
  payload: string;
  hash: string;
}

// Made with PHP's http_build_query and hash_hmac, which the gateway is assumed to use.
const vectors = JSON.parse(readFileSync(new URL('signature-vectors.json', import.meta.url), 'utf8')) as Vector[];

const sign = createRequestSigner(42, 'the-key');
const hashOf = (payload: string): string => createHmac('sha256', 'the-key').update(payload).digest('hex');

it.each(vectors)(
  'a signature is that of PHP: $endpoint, $payload',
  ({ endpoint, secretKey, fields, payload, hash }) => {
    expect(encodeForm(fields)).toBe(payload);
    expect(signForm(payload, secretKey)).toBe(hash);
    const { signedFields } = ENDPOINTS[endpoint.slice(1) as EndpointName];
    // In another order than the API's, so that the client has to produce that of the payload.
    const given = Object.entries(fields).map(([name, value]) => [toPackageName(name), value] as const);
    expect(encodeForm(toFormFields(signedFields, Object.fromEntries(given.reverse())))).toBe(payload);
  },
);

it('a signature is of a text that escapes every byte except letters, digits and - _ . as PHP does', () => {
  const kept = /^[A-Za-z0-9\-_.]$/;
  for (let code = 0x21; code < 0x7f; code += 1) {
    const character = String.fromCharCode(code);
    const escaped = `%${code.toString(16).toUpperCase()}`;
    expect(encodeForm({ x: character })).toBe(`x=${kept.test(character) ? character : escaped}`);
  }
  expect(encodeForm({ x: ' ', y: 'ключ' })).toBe('x=+&y=%D0%BA%D0%BB%D1%8E%D1%87');
});

it('a signature follows the signed payload, which is posted as it is', () => {
  const payload = 'platform_id=42&txhash=abc';
  expect(sign(['platform_id', 'txhash'], { txhash: 'abc' }).body).toBe(`${payload}&hash=${hashOf(payload)}`);
});

it('a signature is removed from a text wherever it occurs, in either case', () => {
  const { redact } = sign(['platform_id'], {});
  const hash = hashOf('platform_id=42');
  expect(redact(`bad hash ${hash}, not ${hash.toUpperCase()}!`)).toBe('bad hash [hash], not [hash]!');
  expect(redact('nothing to hide')).toBe('nothing to hide');
});

it('a signature shows its key neither in the signer nor in a request', () => {
  const made = [sign, sign(['platform_id'], {})];
  expect(inspect(made, { showHidden: true, depth: 9 }) + JSON.stringify(made)).not.toContain('the-key');
});

it("a signature is over the API's names and order, and leaves out what has no value", () => {
  const signed = ['payment_id', 'platform_id', 'amount', 'address_to', 'symbol'];
  const values = { symbol: 'USD', addressTo: 'w', amount: '1', platformId: 42, paymentId: 7 };
  const fields = [7, 42, '1', 'w', 'USD'].map((value, index) => [signed[index], value]);
  expect(Object.entries(toFormFields(signed, values))).toEqual(fields);
  expect(toFormFields(signed, { platformId: 42, amount: '1' })).toEqual({ platform_id: 42, amount: '1' });
  expect(toFormFields(['platform_id'], { platformId: 42, amount: '1' })).toEqual({ platform_id: 42 });
});

it.each(Object.entries(ENDPOINTS))('the row of %s signs every field of its request, and the account', (name, row) => {
  const { path, signedFields, request } = row;
  expect(path).toBe(name);
  expect(signedFields.map(toPackageName).sort()).toEqual([...Object.keys(request.shape), 'platformId'].sort());
  // There is a vector of PHP for it.
  expect(vectors.map(({ endpoint }) => endpoint)).toContain(`/${name}`);
});

const FORM = 'must be an address without spaces, or address:destinationTag';
const XRP = 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456';
it.each<[string, string | undefined]>([
  ...['1BoatSLRHtKNngkdXEeobR76b53LETtpyT', XRP, 'UQ-address:a comment with spaces', 'x'.repeat(256)].map(
    (text): [string, undefined] => [text, undefined],
  ),
  ['', 'must not be empty'],
  [' addr', 'must not begin or end with a space'],
  ['ad dr', FORM],
  [':tag', FORM],
  ['addr:', 'ends with a colon, but no destination tag follows'],
  ['addr:a\nb', 'must not contain control characters'],
  ['addr:\ud800', 'must not contain control characters'],
  ['x'.repeat(257), 'must have at most 256 characters'],
])('a request with the address %j: %s', (text, rule) => {
  const { data, error } = addressToField.safeParse(text);
  if (rule === undefined) expect(data).toBe(text);
  else expect(error?.issues.map(({ message }) => message)).toContain(rule);
});

it.each([
  ['orderId', orderIdField, ['a', 'A-Z+/=-:.,09', 'x'.repeat(64)], ['', 'a_b', 'a b', 'x'.repeat(65), 'a\n', 7]],
  ['symbol', symbolField, ['USD'], ['', 'usd', 'USDT', 'US', 'US1', 'USD\n', 'ÜSD']],
  ['paymentId', paymentIdField, [1, 2 ** 53 - 1], [0, -1, 1.5, '1', 2 ** 53, Number.NaN, null]],
] as const)('a request has in %s the characters and the length that the API allows', (_, schema, good, bad) => {
  for (const [values, isGood] of [
    [good, true],
    [bad, false],
  ] as const) {
    for (const value of values) expect([value, schema.safeParse(value).success]).toEqual([value, isGood]);
  }
});

describe('a payment that the gateway repeats', () => {
  const PAYMENT = { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123' };

  it('differs in each field that is another, which is named with both values', () => {
    expect(comparePayment({ ...PAYMENT }, PAYMENT)).toEqual([]);
    const differences = comparePayment({ paymentId: 11, amount: '15', addressTo: 'r:1' }, PAYMENT);
    expect(differences).toEqual([
      { field: 'paymentId', actual: 11, expected: 10 },
      { field: 'addressTo', actual: 'r:1', expected: PAYMENT.addressTo },
      { field: 'amount', actual: '15', expected: '1.5' },
    ]);
    expect(describeDifferences(differences.slice(2))).toBe('amount is 15 at the gateway, 1.5 in the payout');
  });

  it('differs in an absent field in another way', () => {
    const differences = comparePayment({ amount: '1.5' }, PAYMENT);
    expect(differences.map(({ field, actual }) => [field, actual])).toEqual([
      ['paymentId', undefined],
      ['addressTo', undefined],
    ]);
    expect(describeDifferences(differences.slice(0, 1))).toBe('paymentId is missing at the gateway, 10 in the payout');
  });

  it('may have the address in another spelling', () => {
    const actual = { ...PAYMENT, addressTo: PAYMENT.addressTo.replace(':', ':00') };
    expect(comparePayment(actual, PAYMENT)).toEqual([]);
  });

  it.each([
    ['12.3', '12.300000000000001', true],
    ['277.2', '277.19999999999999', true],
    ['12.3', '12.300000000000003', false],
    ['0.1', '0', false],
  ])('may have the amount %s as the number %s, and never as a string: %s', (amount, actual, isSame) => {
    const compare = (isAmountNumber: boolean) =>
      comparePayment({ ...PAYMENT, amount: actual, ...(isAmountNumber && { isAmountNumber }) }, { ...PAYMENT, amount });
    const difference = { field: 'amount', actual, expected: amount };
    expect(compare(true)).toEqual(isSame ? [] : [difference]);
    expect(compare(false)).toEqual([difference]);
  });

  it.each<[object, string[]]>([
    [{ payment_id: '10', amount: '1.50', address_to: 'abc:1' }, []],
    [{}, []],
    [{ payment_id: '11', amount: '15', address_to: 'abc' }, ['payment_id', 'amount', 'address_to']],
    [{ payment_id: 'x', amount: null }, ['payment_id']],
  ])('in the acceptance of a withdrawal %j has the names of the API', (fields, differing) => {
    const request = { paymentId: 10, amount: '1.5', addressTo: 'abc:1' };
    expect(ENDPOINTS.withdraw.parseResult(fields as Readonly<Record<string, unknown>>, request).differing).toEqual(
      differing,
    );
  });
});
