import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { parseResponse } from '../../src/gateway/responses.js';

function parse(body: string | Buffer, status = 200, contentEncoding = '') {
  return parseResponse({ status, contentEncoding, body: Buffer.from(body) });
}

describe('parseResponse', () => {
  it.each([
    ['{"result":1}', 307, '', 'HTTP 307 is not a response of the gateway'],
    ['{"result":1}', 408, '', 'HTTP 408: something before the gateway did not get the whole request'],
    [Buffer.from([0xff]), 200, '', 'HTTP 200: the body is not whole UTF-8 text'],
    ['{"result":1}', 200, 'gzip', 'HTTP 200: the body is not whole UTF-8 text'],
    ['{"result":1}', 200, 'br', 'HTTP 200: the body is not whole UTF-8 text'],
    ['<html>', 502, '', 'HTTP 502: the body is not JSON'],
    ['[]', 200, '', 'HTTP 200: the body is not a JSON object'],
    ['null', 200, '', 'HTTP 200: the body is not a JSON object'],
    ['7', 200, '', 'HTTP 200: the body is not a JSON object'],
    ['{"result":true,"message":"m"}', 200, '', 'HTTP 200: result is neither a number nor a text'],
    ['{"message":"m"}', 500, '', 'HTTP 500 without a result'],
    ['{}', 499, '', 'HTTP 499: the JSON object has neither result 1 nor a message'],
  ])('says why %s with HTTP %d %s is unclear', (body, status, contentEncoding, reason) => {
    expect(parse(body, status, contentEncoding)).toEqual({ kind: 'unclear', reason });
  });

  it.each(['', 'identity', ' Identity '])('leaves the bytes as they are with the encoding "%s"', (contentEncoding) => {
    expect(parse('{"result":1}', 200, contentEncoding)).toMatchObject({ kind: 'succeeded' });
  });

  it.each(['gzip', 'x-gzip', ' GZIP '])('unpacks with the encoding "%s"', (contentEncoding) => {
    expect(parse(gzipSync('{"result":1}'), 200, contentEncoding)).toMatchObject({ kind: 'succeeded' });
  });

  it.each([
    ['true', 'true'],
    ['7.50', '7.50'],
    ['"a\\tb"', 'a b'],
  ])('accepts the message %s', (message, text) => {
    expect(parse(`{"result":0,"message":${message}}`)).toMatchObject({ kind: 'failed', message: text });
  });

  it.each(['null', '[]', '{}', '" "'])('ignores the message %s', (message) => {
    expect(parse(`{"result":0,"message":${message}}`)).toMatchObject({ kind: 'unclear' });
  });

  it('returns all the fields, also of a failure', () => {
    expect(parse('{"result":0,"message":"m","txhash":"h"}')).toMatchObject({ fields: { txhash: 'h' } });
  });
});
