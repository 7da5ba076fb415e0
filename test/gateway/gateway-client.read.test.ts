import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { InvalidInputError } from '../../src/base/errors.js';
import { exchangeOnce, post } from '../../src/gateway/exchange/exchange-once.js';
import {
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from '../../src/gateway/gateway.js';
import type { GatewayClientOptions } from '../../src/gateway/exchange/client-options.js';
import type { GatewayClient } from '../../src/gateway/v1/client.js';
import { GuardedSocket, openSocket } from '../../src/gateway/exchange/socket.js';
import { loggerWithThrowingChildren, throwingLogger } from '../support/throwing-watchers.js';
import { httpResponse, type RawGateway, type Scheme, startForTest } from './support/raw-gateway.js';
import { makeSelfSignedCertificate } from './support/self-signed-certificate.js';
import { clientOf, recordingLogger, SECRET_KEY } from './support/test-client.js';

async function responding(response: Buffer | string, scheme: Scheme = 'http'): Promise<RawGateway> {
  const bytes = typeof response === 'string' ? httpResponse(200, response) : response;
  return startForTest(scheme, { onRequest: ({ stream }) => void stream.write(bytes) });
}

async function clientOfResponse(response: Buffer | string, options: Partial<GatewayClientOptions> = {}) {
  return clientOf(await responding(response), options);
}

it.each(['http', 'https'] as const)('transactionStatus keeps every digit, over %s', async (scheme) => {
  const server = await responding(
    '{"result":1,"approve":"1","txhash":"0xAbC","payment_id":"33","address_to":"r:1","amount":0.123456789012345678,"fee":1e-8}',
    scheme,
  );
  const client = clientOf(server);
  expect(await client.transactionStatus({ txhash: '0xabc' })).toEqual({
    txhash: '0xabc',
    approve: 1,
    paymentId: 33,
    addressTo: 'r:1',
    amount: '0.123456789012345678',
    isAmountNumber: true,
    fee: '0.00000001',
  });
  expect(server.requests[0]).toMatch(/^POST \/api\/v1\/transactionstatus /);
  expect(server.requests[0]).toMatch(/\r\nContent-Type: application\/x-www-form-urlencoded\r\n/);
  expect(server.requests[0]).toMatch(/platform_id=4242&txhash=0xabc&hash=[0-9a-f]{64}$/);
  client.close();
});

it('getPaymentWallet keeps every digit, and asks nothing that the API does not allow', async () => {
  const server = await responding('{"result":1,"address":"rEb8","destinationTag":1234567890123456789}');
  const client = clientOf(server);
  const wallet = await client.getPaymentWallet({ paymentId: 33, orderId: 'A-z0+/=:.,9' });
  expect(wallet).toEqual({ address: 'rEb8', destinationTag: '1234567890123456789' });
  expect(server.requests[0]).toMatch(/payment_id=33&platform_id=4242&order_id=A-z0%2B%2F%3D%3A\.%2C9&hash=/);
  await expect(client.getPaymentWallet({ paymentId: 33, orderId: 'a_b' })).rejects.toThrow(InvalidInputError);
  expect(server.requests).toHaveLength(1);
});

const QUERIES = {
  status: async (client: GatewayClient) => client.transactionStatus({ txhash: 'abc' }),
  wallet: async (client: GatewayClient) => client.getPaymentWallet({ paymentId: 1, orderId: 'a' }),
  currencies: async (client: GatewayClient) => client.currencies(),
  balance: async (client: GatewayClient) => client.balance(),
};
const unusual = { payment_id: 10, rate: 0.5, exact: '0.123456789012345678', tiny: 1e-30, x: { y: [null, true, 'z'] } };

it.each<[keyof typeof QUERIES, string, unknown]>([
  ['status', '"approve":0,"fee":null,"amount":"a lot","payment_id":"x"', { txhash: 'abc', approve: 0 }],
  [
    'currencies',
    '"list":[{"payment_id":10,"rate":0.5,"exact":0.123456789012345678,"tiny":1e-30,"x":{"y":[null,true,"z"]}}]',
    [unusual],
  ],
  ['balance', '"balance":"12.50"', '12.50'],
  ['balance', '"balance":12345678901234567.123', '12345678901234567.123'],
  ['balance', '"balance":{"USD":{"free":"1"},"list":[1]}', { USD: { free: '1' }, list: [1] }],
])('the answer to %s with %s is read, packed or not', async (query, fields, expected) => {
  const text = `{"result":"1",${fields}}`;
  for (const response of [text, httpResponse(200, gzipSync(text), ['Content-Encoding: gzip'])])
    expect(await QUERIES[query](await clientOfResponse(response))).toEqual(expected);
});

it.each<[keyof typeof QUERIES, string]>([
  ['status', ''],
  ['status', ',"approve":1.5'],
  ['status', ',"approve":1,"txhash":"another"'],
  // Base58 in another case is another transaction.
  ['status', ',"approve":1,"txhash":"ABC"'],
  ['wallet', ''],
  ...['{}', '[1]', '[[]]', '[null]'].map((list): [keyof typeof QUERIES, string] => ['currencies', `,"list":${list}`]),
  // No balance of zero.
  ['balance', ''],
])('the answer to %s is refused where it has result 1 with %s', async (query, more) => {
  const client = await clientOfResponse(`{"result":1${more}}`);
  await expect(QUERIES[query](client)).rejects.toThrow(GatewayInvalidResponseError);
});

const probe = async (response: Buffer | string, signal = new AbortController().signal): Promise<void> =>
  (await clientOfResponse(response)).probe(signal);

it('a probe is content with any balance or refusal, not with a proxy, nor its end', async () => {
  for (const response of ['{"result":1,"balance":"5"}', '{"result":1}', '{"result":0,"message":"wrong hash"}'])
    await expect(probe(response)).resolves.toBeUndefined();
  await expect(probe(httpResponse(502, '<html>'))).rejects.toThrow(/^The gateway did not respond to \/balance: /);
  const server = await startForTest('http', { onRequest: () => undefined });
  const client = clientOf(server);
  await expect(client.probe(AbortSignal.timeout(200))).rejects.toThrow(GatewayUnavailableError);
  client.close();
});

it.each<[string, Buffer, new (...args: never[]) => Error, RegExp]>([
  ['refused, 500', httpResponse(500, '{"result":0,"message":"Bad hash"}'), GatewayRejectedError, /Bad hash/],
  ['redirect', httpResponse(302, '', ['Location: /']), GatewayInvalidResponseError, /302/],
  ['HTML 502', httpResponse(502, '<html>'), GatewayUnavailableError, /502/],
  [
    'never ending',
    Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'),
    GatewayUnavailableError,
    /within 150 ms/,
  ],
  ['101', Buffer.from('HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'), GatewayUnavailableError, /./],
])('a query that fails %s', async (name, response, type, message) => {
  const endsByTimeout = ['never ending', '101'].includes(name);
  const call = (await clientOfResponse(response, endsByTimeout ? { timeoutMs: 150 } : {})).balance();
  await expect(call).rejects.toThrow(type);
  await expect(call).rejects.toThrow(message);
});

it('a query that fails an authority that is not trusted', async () => {
  const server = await responding('{"result":1,"balance":1}', 'https');
  await expect(clientOf({ baseUrl: server.baseUrl }).balance()).rejects.toThrow(/self-signed/);
  expect(server.receivedBytes).toBe(0);
});

it('the times of a client are those of a timer, and no error shows the key', () => {
  const make = (ms: unknown) => (): unknown =>
    clientOf({ baseUrl: 'http://gateway.example' }, { platformId: 0, timeoutMs: ms as number });
  for (const ms of [0, 1.5, 2 ** 31, Number.NaN, '30000']) {
    expect(make(ms)).toThrow(/platformId: .*; baseUrl: .*; timeoutMs: must be a whole number from 1 to 2147483647 /);
    expect(make(ms)).toThrow(InvalidInputError);
    expect(make(ms)).not.toThrow(new RegExp(SECRET_KEY));
  }
  for (const ms of [1, 2 ** 31 - 1]) clientOf({ baseUrl: 'https://g.example' }, { timeoutMs: ms }).close();
});

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC' };
const { signal } = new AbortController();

/** A connection that cannot be made is an error when it is prepared, and "not sent" when a withdrawal needs it. */
async function expectNoConnection(client: GatewayClient, reason: RegExp) {
  const failure = client.openConnection(signal);
  await expect(failure).rejects.toThrow(GatewayUnavailableError);
  await expect(failure).rejects.toThrow(reason);
  expect(await client.withdraw(REQUEST)).toEqual({ kind: 'not_sent', reason: expect.stringMatching(reason) });
}

it('no connection: refused, or a name that does not exist', async () => {
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

it('no connection: an unknown authority, or no TLS at all', async () => {
  const { baseUrl } = await startForTest('https');
  const ca = makeSelfSignedCertificate().cert;
  await expectNoConnection(clientOf({ baseUrl }), /self-signed certificate/);
  await expectNoConnection(clientOf({ baseUrl, ca }), /self-signed certificate/);
  const plain = await startForTest('http', { onConnect: (raw) => void raw.write('HTTP/1.1 400 Bad Request\r\n\r\n') });
  await expectNoConnection(clientOf({ baseUrl: plain.baseUrl.replace('http:', 'https:') }), /wrong version|EPROTO/);
});

it('no connection: a certificate of another host, although its authority is trusted', async () => {
  const server = await startForTest('https', {}, makeSelfSignedCertificate('gateway.example'));
  const baseUrl = server.baseUrl.replace('127.0.0.1', 'localhost');
  await expectNoConnection(clientOf(server), /altnames/);
  await expectNoConnection(clientOf({ baseUrl, ca: server.ca }), /altnames/);
  expect(server.receivedBytes).toBe(0);
});

it('no connection: a handshake that takes too long, or that the caller aborts', async () => {
  // Accepts and sends nothing, as a stuck TCP connection does.
  const server = await startForTest('http');
  const baseUrl = server.baseUrl.replace('http:', 'https:');
  await expectNoConnection(clientOf({ baseUrl }, { connectTimeoutMs: 100 }), /not connected within 100 ms/);
  for (const aborted of [AbortSignal.abort(), AbortSignal.timeout(50)]) {
    await expect(clientOf({ baseUrl }).openConnection(aborted)).rejects.toThrow(/aborted by the caller/);
  }
  await server.allClosed();
});

it.each<Scheme>(['http', 'https'])(
  'the request is written whole, in the same synchronous step as the permission, over %s',
  async (scheme) => {
    const server = await startForTest(scheme, {
      onRequest: ({ stream }) => void stream.write(httpResponse(200, '{}')),
    });
    const socket = await openSocket(new URL(server.baseUrl), { connectTimeoutMs: 5000, ca: server.ca }, signal);
    const order: string[] = [];
    const { stream } = socket;
    const write = stream.write.bind(stream) as (chunk: Buffer, callback: () => void) => boolean;
    stream.write = ((chunk: Buffer, callback: () => void) => {
      order.push(`written: ${chunk.toString().split(' ', 1).join()} … ${chunk.toString().slice(-5)}`);
      return write(chunk, callback);
    }) as typeof stream.write;

    const request = { url: `${server.baseUrl}/withdraw`, body: 'a=1&b=2', headers: {} };
    const mayWrite = () => {
      order.push('asked');
      process.nextTick(() => order.push('next tick'));
      queueMicrotask(() => order.push('microtask'));
      return true;
    };
    const limits = { withdrawTimeoutMs: 5000, clock: systemClock };
    const guarded = new GuardedSocket(socket);
    const exchange = await exchangeOnce(guarded, request, mayWrite, limits);
    guarded.destroy();
    expect(exchange).toMatchObject({ kind: 'responded', response: { status: 200 } });
    expect(order.slice(0, 2)).toEqual(['asked', 'written: POST … 1&b=2']);
    expect(order.slice(2).sort()).toEqual(['microtask', 'next tick']);
  },
);

it('a logger that throws, itself or for its children, costs no response, and fails no query', async () => {
  for (const logger of [throwingLogger, loggerWithThrowingChildren]) {
    const clientFor = async (body: string): Promise<GatewayClient> => clientOfResponse(body, { logger });
    // The second repeats the request differently, which is logged too.
    for (const more of ['', ',"amount":9']) {
      const client = await clientFor(`{"result":1,"txhash":"abc"${more}}`);
      expect(await client.withdraw(REQUEST)).toMatchObject({ kind: 'accepted', gatewayId: 'abc' });
    }
    const refusing = await clientFor('{"result":0,"message":"No"}');
    expect(await refusing.withdraw(REQUEST)).toMatchObject({ kind: 'rejected', message: 'No' });
    expect(await (await clientFor('{"result":1,"balance":"7"}')).balance()).toBe('7');
  }
});

const everything = (value: unknown) => inspect(value, { depth: 20, showHidden: true }) + JSON.stringify(value);

it('client, connection and errors do not disclose the secret key', async () => {
  const server = await responding(httpResponse(502, ''));
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
  const server = await startForTest('http', {
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

it('an error contains nothing of the request', async () => {
  const posted = post({ url: 'http://127.0.0.1:1/withdraw', body: 'amount=1&hash=f00', headers: {} }, new http.Agent());
  const failure: unknown = await posted.catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: expect.stringMatching(/ECONNREFUSED/) });
  expect(inspect(failure, { depth: 20, showHidden: true })).not.toContain('f00');
});
