import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse as parseJson } from 'lossless-json';
import { classifyWithdrawResponse } from '../../src/gateway/endpoints.js';
import { parseDecimal, parseResponse } from '../../src/gateway/responses.js';

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
      expect(classify(body, status)).toMatchObject({ kind: 'accepted', txhash: 'abc' });
    }
    expect(classify(gzipSync(body), 200, 'GZip')).toMatchObject({ kind: 'accepted', txhash: 'abc' });
  });

  it.each([
    ['{"result":0,"message":"No"}', 'No'],
    ['{"result":"0","message":"No"}', 'No'],
    ['{"result":1.0000000000000000001,"message":"No"}', 'No'],
    ['{"result":false,"message":"No","txhash":""}', 'No'],
    ['{"result":"error","message":"No","txhash":null}', 'No'],
    ['{"result":0,"message":"No","txhash":" "}', 'No'],
    ['{"result":0,"message":404.50}', '404.50'],
    ['{"result":0,"message":" a\\u001b[31m\\r\\nb "}', 'a [31m b'],
    // Short and well-formed.
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
    '{"result":0,"message":""}',
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
    ['<html>', 'HTTP 200: the body is not JSON'],
  ])('unknown, with the reason: %s', (body, reason) => {
    expect(classify(body)).toEqual({ kind: 'unknown', reason, httpStatus: 200 });
  });

  it('an acceptance that names the fields that it repeats differently', () => {
    const body = Buffer.from('{"result":1,"txhash":"x","payment_id":"10","amount":15,"address_to":"abc:1"}');
    expect(classifyWithdrawResponse({ status: 200, contentEncoding: '', body }, REQUEST)).toEqual({
      outcome: { kind: 'accepted', txhash: 'x' },
      differing: ['amount'],
    });
  });
});

it('of any JSON nothing is accepted without a txhash or rejected without a message', () => {
  const value = fc.oneof(
    fc.constantFrom('1', '"1"', '1.0', '0', '"abc"', '"No"', '" "', 'null', '[]', 'NaN'),
    fc.json(),
  );
  const member = fc.tuple(fc.constantFrom('result', 'txhash', 'message', 'x'), value);
  const seen: Record<string, number> = {};
  fc.assert(
    fc.property(
      fc.array(member, { maxLength: 6 }),
      fc.constantFrom(200, 200, 204, 307, 400, 429, 500),
      (some, status) => {
        const outcome = classify(`{${some.map(([name, json]) => `"${name}":${json}`).join()}}`, status);
        seen[outcome.kind] = (seen[outcome.kind] ?? 0) + 1;
        if (outcome.kind === 'accepted') expect(outcome.txhash).toMatch(/^[!-~]{1,256}$/);
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
  ['{"result":1}', 200, 'gzip', 'HTTP 200: the body is not whole UTF-8 text'],
  ['{"result":1}', 200, 'br', 'HTTP 200: the body is not whole UTF-8 text'],
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
  ['true', 'true'],
  ['7.50', '7.50'],
  ['"a\\tb"', 'a b'],
  ...['null', '[]', '{}', '" "'].map((message) => [message, undefined] as const),
])('any response has for %s the message %s', (given, message) => {
  const body = `{"result":0,"message":${given},"txhash":"h"}`;
  const failed = { kind: 'failed', message, fields: { txhash: 'h' } };
  expect(parse(body)).toMatchObject(message === undefined ? { kind: 'unclear' } : failed);
});

it.each([
  ['0', '0'],
  ['1e-8', '0.00000001'],
  ['1.5E-7', '0.00000015'],
  ['12.340e1', '123.4'],
  ['0.123456789012345678', '0.123456789012345678'],
  ['123456789012345678901234567890', '123456789012345678901234567890'],
  ['-12.50', '-12.5'],
  ['007', '7'],
])('parseDecimal %s is %s, as a text and as a JSON number', (text, expected) => {
  expect(parseDecimal(text)).toBe(expected);
  if (text !== '007') expect(parseDecimal(parseJson(text))).toBe(expected);
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
