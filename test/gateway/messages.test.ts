import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse as parseJson } from 'lossless-json';
import { describeDifferences } from '../../src/gateway/gateway.js';
import { comparePayment } from '../../src/gateway/compare-payment.js';
import {
  classifyWithdrawResponse,
  ENDPOINTS,
  toPackageName,
  type EndpointName,
} from '../../src/gateway/v1/endpoints.js';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../../src/gateway/payment-fields.js';
import { parseDecimal, parseResponse, parseText } from '../../src/gateway/exchange/responses.js';
import {
  createRequestSigner,
  encodeForm,
  type FormFields,
  signForm,
  toFormFields,
} from '../../src/gateway/v1/signing.js';

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
const hashOf = (payload: string) => createHmac('sha256', 'the-key').update(payload).digest('hex');

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

it('a signed text escapes every byte except letters, digits and - _ . as PHP does', () => {
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

  it('may have another amount if the payout has a symbol, but no other wallet and currency', () => {
    const inDollars = { ...PAYMENT, symbol: 'USD' };
    expect(comparePayment({ ...PAYMENT, amount: '2.84' }, inDollars)).toEqual([]);
    expect(comparePayment({ paymentId: 10, addressTo: PAYMENT.addressTo }, inDollars)).toEqual([]);
    const differences = comparePayment({ paymentId: 11, amount: '2.84', addressTo: 'r:1' }, inDollars);
    expect(differences.map(({ field }) => field)).toEqual(['paymentId', 'addressTo']);
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

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'abc:1' };
const ACCEPTED = '{"result":1,"txhash":"abc"}';

const classify = (body: string | Buffer, status = 200, contentEncoding = '') =>
  classifyWithdrawResponse({ status, contentEncoding, body: Buffer.from(body) }, REQUEST).outcome;

describe('the response to a withdrawal is', () => {
  it.each([
    ACCEPTED,
    '{"result":"1","txhash":"abc"}',
    '{"result":1.0,"txhash":"abc","message":"fine"}',
    `\uFEFF ${ACCEPTED}\n`,
    '{"result":1,"txhash":"abc","result":1}',
  ])('accepted: %s', (body) => {
    for (const status of [200, 201, 400, 429, 500, 503]) {
      expect(classify(body, status)).toMatchObject({ kind: 'accepted', gatewayId: 'abc' });
    }
    expect(classify(gzipSync(body), 200, 'GZip')).toMatchObject({ kind: 'accepted', gatewayId: 'abc' });
  });

  it.each([
    ['{"result":0,"message":"No"}', 'No'],
    ['{"result":"0","message":"No"}', 'No'],
    ['{"result":1.0000000000000000001,"message":"No"}', 'No'],
    ['{"result":false,"message":"No","txhash":""}', 'No'],
    ['{"result":"error","message":"No","txhash":null}', 'No'],
    ['{"result":0,"message":"No","txhash":" "}', 'No'],
    ['{"result":0,"message":404.50}', '404.50'],
    ['{"result":0,"message":true}', 'true'],
    ['{"result":0,"message":" a\\u001b[31m\\r\\nb "}', 'a [31m b'],
    [`{"result":0,"message":"${'x'.repeat(499)}😀"}`, `${'x'.repeat(499)}\uFFFD`],
  ])('rejected at any HTTP status: %.60s', (body, message) => {
    for (const status of [200, 400, 429, 500, 503])
      expect(classify(body, status)).toEqual({ kind: 'rejected', message, httpStatus: status });
  });

  it.each(['{"message":"No"}', '{"result":null,"message":"No"}'])('rejected below HTTP 500: %s', (body) => {
    for (const status of [200, 204, 400, 429, 499]) expect(classify(body, status)).toMatchObject({ kind: 'rejected' });
    for (const status of [500, 502, 503, 599]) expect(classify(body, status)).toMatchObject({ kind: 'unknown' });
  });

  it.each([
    '{"result":1}',
    ...['""', '" "', '"null"', '"0"', `"0x${'0'.repeat(64)}"`, '"pending"', '"a b"', '123', '["abc"]', '"é"'].map(
      (txhash) => `{"result":1,"txhash":${txhash}}`,
    ),
    '{"result":1,"txhash":null,"message":"No"}',
    '{"result":0,"message":"No","txhash":"abc"}',
    '{"result":0}',
    ...['" "', '[]', 'null'].map((message) => `{"result":0,"message":${message}}`),
    '{"result":0,"message":{"text":"No"}}',
    '{"result":true,"message":"Yes"}',
    '{"result":{},"message":"No"}',
    '{"result":[1],"txhash":"abc"}',
    '{"result":1,"result":0,"txhash":"abc","message":"No"}',
    `{"__proto__":${ACCEPTED}}`,
    '{"result":1,"__proto__":{"txhash":"abc"}}',
    '{"result":NaN,"message":"No"}',
    '{"result":01,"txhash":"abc"}',
    '{"result":1e999999999,"txhash":"abc"}',
    "{'result':1,'txhash':'abc'}",
    '{"result":1,"txhash":"abc"',
    `${ACCEPTED}}`,
    ...['{}', 'null', '', '<html></html>'],
    `\uFEFF\uFEFF${ACCEPTED}`,
    '['.repeat(1_000_000),
    `{"result":1,"txhash":"${'a'.repeat(257)}"}`,
    `{"result":1,"txhash":"abc","x":${'{"x":'.repeat(100_000)}1${'}'.repeat(100_000)}}`,
  ])('unknown: %.70s', (body) => {
    for (const status of [200, 400, 500]) expect(classify(body, status)).toMatchObject({ kind: 'unknown' });
  });

  it('unknown where it is a redirect or a 408, whatever the body says', () => {
    for (const status of [100, 101, 300, 301, 302, 304, 307, 308, 399, 408]) {
      for (const body of [ACCEPTED, '{"result":0,"message":"No"}']) {
        expect([status, classify(body, status)]).toMatchObject([status, { kind: 'unknown' }]);
      }
    }
  });

  it('unknown where its bytes are not whole UTF-8 text in the named encoding', () => {
    const broken = Buffer.from('{"result":1,"txhash":"abc","note":"?"}');
    broken[broken.indexOf('?')] = 0xff;
    const zipped = gzipSync(ACCEPTED);
    const bomb = gzipSync(`${ACCEPTED.slice(0, -1)}${' '.repeat(50_000_000)}}`);
    const cut = Array.from({ length: zipped.length - 1 }, (_, index) => zipped.subarray(0, -index - 1));
    for (const body of [broken, Buffer.from(ACCEPTED, 'utf16le'), zipped]) {
      expect(classify(body)).toMatchObject({ kind: 'unknown' });
    }
    for (const body of [...cut, bomb]) expect(classify(body, 200, 'gzip')).toMatchObject({ kind: 'unknown' });
    expect(classify(ACCEPTED, 200, 'br')).toMatchObject({ kind: 'unknown' });
  });

  it.each([
    ['{"result":0,"message":"No","txhash":"h"}', 'the gateway reported a failure together with a txhash: No'],
    ['{"result":1}', 'the gateway reported success without a usable txhash'],
  ])('unknown, with the reason: %s', (body, reason) => {
    expect(classify(body)).toEqual({ kind: 'unknown', reason, httpStatus: 200 });
  });

  it('an acceptance that names the fields that it repeats differently', () => {
    const body = Buffer.from('{"result":1,"txhash":"x","payment_id":"10","amount":15,"address_to":"abc:1"}');
    expect(classifyWithdrawResponse({ status: 200, contentEncoding: '', body }, REQUEST)).toEqual({
      outcome: { kind: 'accepted', gatewayId: 'x', txhash: 'x' },
      differing: ['amount'],
    });
  });
});

it('of any JSON nothing is accepted without a txhash or rejected without a message', () => {
  const values = fc.constantFrom('1', '"1"', '1.0', '0', '"abc"', '"No"', '" "', 'null', '[]', 'NaN');
  const value = fc.oneof({ weight: 3, arbitrary: values }, fc.json());
  const member = fc.tuple(fc.constantFrom('result', 'txhash', 'message', 'x'), value);
  const seen: Record<string, number> = {};
  fc.assert(
    fc.property(
      fc.array(member, { maxLength: 6 }),
      fc.constantFrom(200, 200, 204, 307, 400, 429, 500),
      (some, status) => {
        const outcome = classify(`{${some.map(([name, json]) => `"${name}":${json}`).join()}}`, status);
        seen[outcome.kind] = (seen[outcome.kind] ?? 0) + 1;
        if (outcome.kind === 'accepted') expect(outcome.gatewayId).toMatch(/^[!-~]{1,256}$/);
        if (outcome.kind === 'rejected') expect(outcome.message.trim()).not.toBe('');
      },
    ),
    { numRuns: 3_000 },
  );
  // A kind that never occurs would mean that the generator tests less than it claims.
  expect(Object.keys(seen).sort()).toEqual(['accepted', 'rejected', 'unknown']);
});

const parse = (body: string | Buffer, status = 200, contentEncoding = '') =>
  parseResponse({ status, contentEncoding, body: Buffer.from(body) });

it.each([
  ['{"result":1}', 307, '', 'HTTP 307 is not a response of the gateway'],
  ['{"result":1}', 408, '', 'HTTP 408: something before the gateway did not get the whole request'],
  [Buffer.from([0xff]), 200, '', 'HTTP 200: the body is not whole UTF-8 text'],
  ['<html>', 502, '', 'HTTP 502: the body is not JSON'],
  ['[]', 200, '', 'HTTP 200: the body is not a JSON object'],
  ['{"result":true,"message":"m"}', 200, '', 'HTTP 200: result is neither a number nor a text'],
  ['{"message":"m"}', 500, '', 'HTTP 500 without a result'],
  ['{}', 499, '', 'HTTP 499: the JSON object has neither result 1 nor a message'],
])('any response says why %s with HTTP %d %s is unclear', (body, status, contentEncoding, reason) => {
  expect(parse(body, status, contentEncoding)).toEqual({ kind: 'unclear', reason });
});

it('any response is unpacked by the encoding that it names', () => {
  for (const encoding of ['', 'identity', ' Identity '])
    expect(parse('{"result":1}', 200, encoding)).toMatchObject({ kind: 'succeeded' });
  for (const encoding of ['gzip', 'x-gzip', ' GZIP '])
    expect(parse(gzipSync('{"result":1}'), 200, encoding)).toMatchObject({ kind: 'succeeded' });
});

it.each([
  ['0', '0'],
  ['1.5E-7', '0.00000015'],
  ['0.123456789012345678', '0.123456789012345678'],
  ['123456789012345678901234567890', '123456789012345678901234567890'],
  ['-12.50', '-12.5'],
  ['007', '7'],
])('parseDecimal %s is %s, as a text and as a JSON number', (text, expected) => {
  expect(parseDecimal(text)).toBe(expected);
  if (text !== '007') expect(parseDecimal(parseJson(text))).toBe(expected);
});

it('parseText takes a text, and the digits of a number', () => {
  expect(['a', parseJson('7.0e1')].map(parseText)).toEqual(['a', '7.0e1']);
  for (const value of ['', true, null, undefined, 7, {}]) expect([value, parseText(value)]).toEqual([value, undefined]);
});

it('parseDecimal refuses what is no decimal, or neither text nor number', () => {
  const texts = ['', ' 1', '1 ', '.5', '5.', '0x10', '1e', '1e401', '1e99999', 'NaN', '1'.repeat(401)];
  for (const value of [...texts, undefined, null, true, 1, [], {}, ['1']])
    expect([value, parseDecimal(value)]).toEqual([value, undefined]);
});

it('parseDecimal moves the point without losing a digit', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 30n }), fc.integer({ min: -40, max: 40 }), (digits, exponent) => {
      const plain = parseDecimal(`${digits}e${exponent}`) ?? '';
      expect(plain).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);
      const [whole = '', fraction = ''] = plain.split('.');
      expect(BigInt(whole + fraction.padEnd(40, '0'))).toBe(digits * 10n ** BigInt(40 + exponent));
    }),
  );
});
