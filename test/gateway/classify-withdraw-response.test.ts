import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { classifyWithdrawResponse } from '../../src/gateway/endpoints.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'abc:1' };

function classify(body: string | Buffer, status = 200, contentEncoding = '') {
  return classifyWithdrawResponse({ status, contentEncoding, body: Buffer.from(body) }, REQUEST).outcome;
}

describe('classifyWithdrawResponse', () => {
  it.each([
    ['{"result":1,"txhash":"abc"}'],
    ['{"result":"1","txhash":"abc"}'],
    ['{"result":1.0,"txhash":"abc","message":"fine"}'],
    ['\uFEFF {"result":1,"txhash":"abc"}\n'],
    ['{"result":1,"txhash":"abc","result":1}'],
  ])('accepted: %s', (body) => {
    for (const status of [200, 201, 400, 429, 500, 503]) {
      expect(classify(body, status)).toMatchObject({ kind: 'accepted', txhash: 'abc' });
    }
    expect(classify(gzipSync(body), 200, 'GZip')).toMatchObject({ kind: 'accepted', txhash: 'abc' });
  });

  it.each([
    ['{"result":0,"message":"No"}', 'No'],
    ['{"result":"0","message":"No"}', 'No'],
    ['{"result":2,"message":"No"}', 'No'],
    ['{"result":-1,"message":"No"}', 'No'],
    ['{"result":1.0000000000000000001,"message":"No"}', 'No'],
    ['{"result":false,"message":"No","txhash":""}', 'No'],
    ['{"result":"error","message":"No","txhash":null}', 'No'],
    ['{"result":0,"message":"No","txhash":" "}', 'No'],
    ['{"result":0,"message":404.50}', '404.50'],
    ['{"result":0,"message":" a\\u001b[31m\\r\\nb "}', 'a [31m b'],
  ])('rejected at any HTTP status: %s', (body, message) => {
    for (const status of [200, 400, 429, 500, 503])
      expect(classify(body, status)).toEqual({ kind: 'rejected', message, httpStatus: status });
  });

  it.each([['{"message":"No"}'], ['{"result":null,"message":"No"}']])('rejected below HTTP 500: %s', (body) => {
    for (const status of [200, 204, 400, 429, 499]) expect(classify(body, status)).toMatchObject({ kind: 'rejected' });
    for (const status of [500, 502, 503, 599]) expect(classify(body, status)).toMatchObject({ kind: 'unknown' });
  });

  it.each([
    ['{"result":1}'],
    ['{"result":1,"txhash":""}'],
    ['{"result":1,"txhash":" "}'],
    ['{"result":1,"txhash":"null"}'],
    ['{"result":1,"txhash":"0"}'],
    ['{"result":1,"txhash":"0x0000000000000000000000000000000000000000000000000000000000000000"}'],
    ['{"result":1,"txhash":"pending"}'],
    ['{"result":1,"txhash":"a b"}'],
    ['{"result":1,"txhash":123}'],
    ['{"result":1,"txhash":null,"message":"No"}'],
    ['{"result":1,"txhash":["abc"]}'],
    ['{"result":1,"txhash":"é"}'],
    ['{"result":0,"message":"No","txhash":"abc"}'],
    ['{"result":0,"message":"No","txhash":7}'],
    ['{"result":0}'],
    ['{"result":0,"message":""}'],
    ['{"result":0,"message":{"text":"No"}}'],
    ['{"result":true,"message":"Yes"}'],
    ['{"result":{},"message":"No"}'],
    ['{"result":[1],"txhash":"abc"}'],
    ['{"result":{"isLosslessNumber":true,"value":"1"},"txhash":"abc"}'],
    ['{"result":1,"result":0,"txhash":"abc","message":"No"}'],
    ['{"__proto__":{"result":1,"txhash":"abc"}}'],
    ['{"result":1,"__proto__":{"txhash":"abc"}}'],
    ['{"result":NaN,"message":"No"}'],
    ['{"result":01,"txhash":"abc"}'],
    ['{"result":1e999999999,"txhash":"abc"}'],
    ["{'result':1,'txhash':'abc'}"],
    ['{"result":1,"txhash":"abc"'],
    ['{"result":1,"txhash":"abc"}}'],
    ['{"result":1,"txhash":"abc"}{"result":1,"txhash":"abc"}'],
    ['[{"result":1,"txhash":"abc"}]'],
    ['"{\\"result\\":1,\\"txhash\\":\\"abc\\"}"'],
    ['{}'],
    ['null'],
    ['1'],
    ['true'],
    [''],
    ['<html></html>'],
    ['\uFEFF\uFEFF{"result":1,"txhash":"abc"}'],
    ['['.repeat(1_000_000)],
    [`{"result":1,"txhash":"${'a'.repeat(257)}"}`],
    [`{"result":1,"txhash":"abc","x":${'{"x":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
  ])('unknown: %.70s', (body) => {
    for (const status of [200, 400, 500]) expect(classify(body, status)).toMatchObject({ kind: 'unknown' });
  });

  it('unknown: a redirect or a 408, whatever the body says', () => {
    for (const status of [100, 101, 300, 301, 302, 304, 307, 308, 399, 408]) {
      expect(classify('{"result":1,"txhash":"abc"}', status)).toMatchObject({ kind: 'unknown' });
      expect(classify('{"result":0,"message":"No"}', status)).toMatchObject({ kind: 'unknown' });
    }
  });

  it('unknown: bytes that are not whole UTF-8 text, or not in the encoding that the header names', () => {
    const accepted = Buffer.from('{"result":1,"txhash":"abc","note":"?"}');
    accepted[accepted.indexOf('?')] = 0xff;
    expect(classify(accepted)).toMatchObject({ kind: 'unknown' });
    const utf16 = Buffer.from('{"result":1,"txhash":"abc"}', 'utf16le');
    expect(classify(utf16)).toMatchObject({ kind: 'unknown' });
    const zipped = gzipSync('{"result":1,"txhash":"abc"}');
    expect(classify(zipped)).toMatchObject({ kind: 'unknown' });
    for (let cut = 1; cut < zipped.length; cut += 1) {
      expect(classify(zipped.subarray(0, -cut), 200, 'gzip')).toMatchObject({ kind: 'unknown' });
    }
    expect(classify('{"result":1,"txhash":"abc"}', 200, 'br')).toMatchObject({ kind: 'unknown' });
    const bomb = gzipSync('{"result":1,"txhash":"abc"' + ' '.repeat(50_000_000) + '}');
    expect(classify(bomb, 200, 'gzip')).toMatchObject({ kind: 'unknown' });
  });

  it('keeps a message short and well-formed', () => {
    const outcome = classify(`{"result":0,"message":"${'x'.repeat(499)}😀"}`);
    expect(outcome).toEqual({ kind: 'rejected', message: `${'x'.repeat(499)}\uFFFD`, httpStatus: 200 });
  });
});

describe('the reason of an unknown outcome', () => {
  it.each([
    ['{"result":0,"message":"No","txhash":"h"}', 'the gateway reported a failure together with a txhash: No'],
    ['{"result":1}', 'the gateway reported success without a usable txhash'],
    ['<html>', 'HTTP 200: the body is not JSON'],
  ])('%s', (body, reason) => {
    expect(classify(body)).toEqual({ kind: 'unknown', reason, httpStatus: 200 });
  });
});

it('an acceptance that repeats the request differently names the fields', () => {
  const body = Buffer.from('{"result":1,"txhash":"x","payment_id":"10","amount":15,"address_to":"abc:1"}');
  expect(classifyWithdrawResponse({ status: 200, contentEncoding: '', body }, REQUEST)).toEqual({
    outcome: { kind: 'accepted', txhash: 'x' },
    differing: ['amount'],
  });
});
