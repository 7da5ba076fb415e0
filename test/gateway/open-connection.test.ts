import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/logger.js';
import { exchangeOnce, postForm } from '../../src/gateway/exchange-once.js';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import type { GatewayClient } from '../../src/gateway/gateway-client.js';
import { GuardedSocket, openSocket } from '../../src/gateway/socket.js';
import { loggerWithThrowingChildren, throwingLogger } from '../support/throwing-watchers.js';
import { httpResponse, type RawGateway, type Scheme, startForTest as start } from './support/raw-gateway.js';
import { makeSelfSignedCertificate } from './support/self-signed-certificate.js';
import { clientOf, recordingLogger, SECRET_KEY } from './support/test-client.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC' };
const { signal } = new AbortController();

/** A connection that cannot be made is an error when it is prepared, and "not sent" when a withdrawal needs it. */
async function expectNoConnection(client: GatewayClient, reason: RegExp): Promise<void> {
  const failure = client.openConnection(signal);
  await expect(failure).rejects.toThrow(GatewayUnavailableError);
  await expect(failure).rejects.toThrow(reason);
  expect(await client.withdraw(REQUEST)).toEqual({ kind: 'not_sent', reason: expect.stringMatching(reason) });
}

describe('a connection that cannot be made', () => {
  it('refused, or a name that does not exist', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    for (const origin of ['http://127.0.0.1', 'https://localhost']) {
      await expectNoConnection(clientOf({ baseUrl: `${origin}:${port}` }), /ECONNREFUSED/);
    }
    await expectNoConnection(clientOf({ baseUrl: 'https://gateway.invalid' }), /gateway\.invalid/);
  });

  it('an unknown authority, or no TLS at all', async () => {
    const { baseUrl } = await start('https');
    const ca = makeSelfSignedCertificate().cert;
    await expectNoConnection(clientOf({ baseUrl }), /self-signed certificate/);
    await expectNoConnection(clientOf({ baseUrl, ca }), /self-signed certificate/);
    const plain = await start('http', { onConnect: (raw) => void raw.write('HTTP/1.1 400 Bad Request\r\n\r\n') });
    await expectNoConnection(clientOf({ baseUrl: plain.baseUrl.replace('http:', 'https:') }), /wrong version|EPROTO/);
  });

  it('a certificate of another host, although its authority is trusted', async () => {
    const server = await start('https', {}, makeSelfSignedCertificate('gateway.example'));
    const baseUrl = server.baseUrl.replace('127.0.0.1', 'localhost');
    await expectNoConnection(clientOf(server), /altnames/);
    await expectNoConnection(clientOf({ baseUrl, ca: server.ca }), /altnames/);
    expect(server.receivedBytes).toBe(0);
  });

  it('a handshake that takes too long, or that the caller aborts', async () => {
    // Accepts and sends nothing, as a stuck TCP connection does.
    const server = await start('http');
    const baseUrl = server.baseUrl.replace('http:', 'https:');
    await expectNoConnection(clientOf({ baseUrl }, { connectTimeoutMs: 100 }), /not connected within 100 ms/);
    for (const aborted of [AbortSignal.abort(), AbortSignal.timeout(50)]) {
      await expect(clientOf({ baseUrl }).openConnection(aborted)).rejects.toThrow(/aborted by the caller/);
    }
    await server.allClosed();
  });
});

it.each<Scheme>(['http', 'https'])(
  'the whole request is written in one piece, in the same synchronous step as the permission, over %s',
  async (scheme) => {
    const server = await start(scheme, { onRequest: ({ stream }) => void stream.write(httpResponse(200, '{}')) });
    const socket = await openSocket(new URL(server.baseUrl), { connectTimeoutMs: 5000, ca: server.ca }, signal);
    const order: string[] = [];
    const { stream } = socket;
    const write = stream.write.bind(stream) as (chunk: Buffer, callback: () => void) => boolean;
    stream.write = ((chunk: Buffer, callback: () => void) => {
      order.push(`written: ${chunk.toString().split(' ', 1).join()} … ${chunk.toString().slice(-5)}`);
      return write(chunk, callback);
    }) as typeof stream.write;

    const request = { url: `${server.baseUrl}/withdraw`, body: 'a=1&b=2' };
    const mayWrite = (): boolean => {
      order.push('asked');
      process.nextTick(() => order.push('next tick'));
      queueMicrotask(() => order.push('microtask'));
      return true;
    };
    const limits = { withdrawTimeoutMs: 5000, clock: systemClock };
    const exchange = await exchangeOnce(new GuardedSocket(socket), request, mayWrite, limits);
    expect(exchange).toMatchObject({ kind: 'responded', response: { status: 200 } });
    expect(order.slice(0, 2)).toEqual(['asked', 'written: POST … 1&b=2']);
    expect(order.slice(2).sort()).toEqual(['microtask', 'next tick']);
  },
);

it('an error contains nothing of the request', async () => {
  const posted = postForm('http://127.0.0.1:1/withdraw', 'amount=1&hash=f00', new http.Agent());
  const failure: unknown = await posted.catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: expect.stringMatching(/ECONNREFUSED/) });
  expect(inspect(failure, { depth: 20, showHidden: true })).not.toContain('f00');
});

async function respondToAll(body: string, status = 200): Promise<RawGateway> {
  return start('http', { onRequest: ({ stream }) => void stream.write(httpResponse(status, body)) });
}

it.each<[string, Logger]>([
  ['whose every call throws', throwingLogger],
  ['whose children throw', loggerWithThrowingChildren],
])('a logger %s costs no response, and fails no query', async (_name, logger) => {
  const outcomeOf = async (body: string) => clientOf(await respondToAll(body), { logger }).withdraw(REQUEST);
  // The second repeats the request differently, which is logged too.
  for (const more of ['', ',"amount":9']) {
    expect(await outcomeOf(`{"result":1,"txhash":"abc"${more}}`)).toMatchObject({ kind: 'accepted', txhash: 'abc' });
  }
  expect(await outcomeOf('{"result":0,"message":"No"}')).toMatchObject({ kind: 'rejected', message: 'No' });
  expect(await clientOf(await respondToAll('{"result":1,"balance":"7"}'), { logger }).balance()).toBe('7');
});

const everything = (value: unknown) => inspect(value, { depth: 20, showHidden: true }) + JSON.stringify(value);

it('client, connection and errors do not disclose the secret key', async () => {
  const server = await respondToAll('', 502);
  const client = clientOf(server);
  const connection = await client.openConnection(new AbortController().signal);
  const error: unknown = await client.balance().catch((reason: unknown) => reason);
  const unreachable = clientOf({ baseUrl: 'http://127.0.0.1:1' });
  const rejection: unknown = await unreachable.balance().catch((reason: unknown) => reason);
  connection.close();
  for (const value of [client, connection, error, rejection])
    expect(everything(value)).not.toMatch(new RegExp(`${SECRET_KEY}|[0-9a-f]{64}|hash=`));
});

it('the log discloses neither address nor hash, even where the gateway repeats it', async () => {
  const server = await start('http', {
    onRequest: ({ stream }, request) => {
      const hash = /hash=(\w+)/.exec(request)?.[1] ?? '';
      stream.write(httpResponse(200, `{"result":0,"message":"bad hash ${hash.toUpperCase()}"}`));
    },
  });
  const logger = recordingLogger();
  const client = clientOf(server, { logger });
  const outcome = await client.withdraw(REQUEST);
  expect(outcome).toMatchObject({ kind: 'rejected', message: 'bad hash [hash]' });
  await expect(client.balance()).rejects.toThrow('bad hash [hash]');

  expect(logger.lines.map(({ fields }) => fields)).toEqual([
    expect.objectContaining({ endpoint: 'withdraw', httpStatus: 200, outcome: 'rejected' }),
    expect.objectContaining({ endpoint: 'balance', httpStatus: 200, outcome: 'failed' }),
  ]);
  expect(everything(logger.lines)).not.toMatch(new RegExp(`${SECRET_KEY}|${REQUEST.addressTo}|[0-9a-f]{64}`, 'i'));
});
