import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { readAnswer } from '../../src/gateway/response.js';

function read(body: string | Buffer, status = 200, contentEncoding = '') {
  return readAnswer({ status, contentEncoding, body: Buffer.from(body) });
}

describe('readAnswer', () => {
  it.each([
    ['{"result":1}', 307, '', 'HTTP 307 is not an answer of the gateway'],
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
  ])('says why it does not believe %s with HTTP %d %s', (body, status, contentEncoding, reason) => {
    expect(read(body, status, contentEncoding)).toEqual({ kind: 'unclear', reason });
  });

  it.each(['', 'identity', ' Identity '])('takes bytes as they are with the encoding "%s"', (contentEncoding) => {
    expect(read('{"result":1}', 200, contentEncoding)).toMatchObject({ kind: 'succeeded' });
  });

  it.each(['gzip', 'x-gzip', ' GZIP '])('unpacks with the encoding "%s"', (contentEncoding) => {
    expect(read(gzipSync('{"result":1}'), 200, contentEncoding)).toMatchObject({ kind: 'succeeded' });
  });

  it.each([
    ['true', 'true'],
    ['7.50', '7.50'],
    ['"a\\tb"', 'a b'],
  ])('reads the message %s', (message, text) => {
    expect(read(`{"result":0,"message":${message}}`)).toMatchObject({ kind: 'failed', message: text });
  });

  it.each(['null', '[]', '{}', '" "'])('takes %s for no message', (message) => {
    expect(read(`{"result":0,"message":${message}}`)).toMatchObject({ kind: 'unclear' });
  });

  it('hands on all the fields, also of a failure', () => {
    expect(read('{"result":0,"message":"m","txhash":"h"}')).toMatchObject({ fields: { txhash: 'h' } });
  });
});
