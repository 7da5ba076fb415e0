import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { RawResponse } from '../../src/gateway/exchange/responses.js';
import type { GatewayClient } from '../../src/gateway/v1/client.js';
import { classifyWithdrawResponse } from '../../src/gateway/v1/endpoints.js';
import { startRawGateway, type RawGateway } from './support/raw-gateway.js';
import { clientOf } from './support/test-client.js';

const RESPONSES = 20_000;
const AT_ONCE = 50;
const CRLF = Buffer.from('\r\n');

/** Values that are right or nearly right, because random ones are nearly never. */
const result = mostly('1', '"1"', '1.0', '1e0', '0', '0', '"0"', 'true', 'null', '-1', '"error"', '[]', '{}', 'NaN');
const txhash = mostly('"abc"', '""', '" "', '"a b"', 'null', '5', '[]', '"é"', `"${'f'.repeat(300)}"`);
const message = mostly('"No"', '""', 'null', '404', '{}', '"\\u0000"', '"\\ud800"');
const named = (name: string, value: fc.Arbitrary<string>) => value.map((json) => `"${name}":${json}`);
const members = [named('result', result), named('txhash', txhash), named('message', message), named('x', fc.json())];
const object = fc
  .oneof(
    fc.subarray(members).chain((some) => fc.tuple(...some)),
    fc.array(fc.oneof(...members), { maxLength: 6 }),
  )
  .map((some) => `{${some.join(',')}}`);
const text = fc.oneof(
  object,
  object,
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.nat(3000).map((depth) => `{"result":1,"a":${'['.repeat(depth)}`),
);
const body = fc.oneof(
  text.map((value) => Buffer.from(value)),
  text.map((value) => Buffer.from(value, 'utf16le')),
  fc.tuple(object, fc.nat(40_000)).map(([json, size]) => Buffer.from(json + ' '.repeat(size))),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
);

function mostly(usual: string, ...others: string[]): fc.Arbitrary<string> {
  return fc.oneof(fc.constant(usual), fc.constantFrom(...others));
}

/** In one of eight responses. */
const rarely = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });

interface GeneratedResponse {
  readonly bytes: Buffer;
  /** The complete, well-formed response; undefined where it is incomplete or malformed. */
  readonly whole: RawResponse | undefined;
}

const response: fc.Arbitrary<GeneratedResponse> = fc
  .record({
    status: fc.constantFrom(200, 200, 200, 200, 200, 204, 304, 307, 400, 408, 429, 500, 502, 101, 999),
    body,
    gzip: fc.boolean(),
    misnamed: rarely(fc.constantFrom('gzip', 'identity', 'br', 'gzip, gzip')),
    framing: fc.constantFrom('length', 'length', 'chunked', 'none'),
    garbage: rarely(fc.uint8Array({ minLength: 1, maxLength: 20 })),
    cutAt: rarely(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ status, body, gzip, misnamed, framing, garbage, cutAt }) => {
    const content = gzip ? gzipSync(body) : body;
    const contentEncoding = misnamed ?? (gzip ? 'gzip' : 'identity');
    const head = [`HTTP/1.1 ${status} X`, 'Connection: close', `Content-Encoding: ${contentEncoding}`];
    if (framing === 'length') head.push(`Content-Length: ${content.length}`);
    if (framing === 'chunked') head.push('Transfer-Encoding: chunked');
    const chunk = content.length === 0 ? [] : [Buffer.from(`${content.length.toString(16)}\r\n`), content, CRLF];
    const bytes = Buffer.concat([
      garbage ?? Buffer.alloc(0),
      Buffer.from(`${head.join('\r\n')}\r\n\r\n`),
      ...(framing === 'chunked' ? [...chunk, Buffer.from('0\r\n\r\n')] : [content]),
    ]);
    const intact = garbage === null && cutAt === null && ![101, 204, 304].includes(status);
    return {
      bytes: cutAt === null ? bytes : bytes.subarray(0, Math.floor(bytes.length * cutAt)),
      whole: intact ? { status, contentEncoding, body: content } : undefined,
    };
  });

let server: RawGateway;
let client: GatewayClient;
const waiting = new Map<string, Buffer>();

beforeAll(async () => {
  server = await startRawGateway('http', {
    onRequest: ({ stream }, request) => {
      const ticket = /address_to=(\w+)/.exec(request)?.[1] ?? '';
      stream.end(waiting.get(ticket) ?? '');
    },
  });
  client = clientOf(server, { withdrawTimeoutMs: 10_000 });
});

afterAll(async () => {
  await server.stop();
});

it('of 20,000 random responses over a socket none is accepted without a txhash, or taken for not sent', async () => {
  const seen: Record<string, number> = {};
  const batch = fc.array(response, { minLength: AT_ONCE, maxLength: AT_ONCE, size: 'max' });
  await fc.assert(
    fc.asyncProperty(batch, async (responses) => {
      await Promise.all(
        responses.map(async ({ bytes, whole }, index) => {
          const ticket = `wallet${index}`;
          waiting.set(ticket, bytes);
          const request = { paymentId: 1, amount: '1', addressTo: ticket };
          const connection = await client.openConnection(new AbortController().signal);
          const outcome = await connection.withdraw(request, { mayWrite: () => true });
          seen[outcome.kind] = (seen[outcome.kind] ?? 0) + 1;
          expect(['accepted', 'rejected', 'unknown']).toContain(outcome.kind);
          if (outcome.kind === 'accepted') expect(outcome.gatewayId).toBe('abc');
          if (outcome.kind === 'rejected') expect(outcome.message).not.toBe('');
          // No response that arrived completely is lost on the way through the socket.
          if (whole !== undefined) expect(outcome.kind).toBe(classifyWithdrawResponse(whole, request).outcome.kind);
        }),
      );
    }),
    { numRuns: RESPONSES / AT_ONCE },
  );
  // A kind that never occurs would mean that the generator tests less than it claims.
  for (const kind of ['accepted', 'rejected', 'unknown']) expect(seen[kind]).toBeGreaterThan(100);
}, 600_000);
