import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { InvalidInputError } from '../../src/base/errors.js';
import {
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from '../../src/gateway/gateway.js';
import type { GatewayClientOptions } from '../../src/gateway/gateway-client.js';
import { httpResponse, type RawGateway, type Scheme, startForTest } from './support/raw-gateway.js';
import { clientOf, SECRET_KEY } from './support/test-client.js';

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

it('transactionStatus needs nothing but approve', async () => {
  const client = await clientOfResponse('{"result":"1","approve":0,"fee":null,"amount":"a lot","payment_id":"x"}');
  expect(await client.transactionStatus({ txhash: 'abc' })).toEqual({ txhash: 'abc', approve: 0 });
});

it.each([
  '',
  ',"approve":1.5',
  ',"approve":1,"txhash":"another"',
  // Base58 in another case is another transaction.
  ',"approve":1,"txhash":"ABC"',
])('transactionStatus refuses result 1 with %s', async (more) => {
  const client = await clientOfResponse(`{"result":1${more}}`);
  await expect(client.transactionStatus({ txhash: 'abc' })).rejects.toThrow(GatewayInvalidResponseError);
});

describe('the other queries', () => {
  it('getPaymentWallet', async () => {
    const server = await responding('{"result":1,"address":"rEb8","destinationTag":1234567890123456789}');
    const client = clientOf(server);
    const wallet = await client.getPaymentWallet({ paymentId: 33, orderId: 'A-z0+/=:.,9' });
    expect(wallet).toEqual({ address: 'rEb8', destinationTag: '1234567890123456789' });
    expect(server.requests[0]).toMatch(/payment_id=33&platform_id=4242&order_id=A-z0%2B%2F%3D%3A\.%2C9&hash=/);
    await expect(client.getPaymentWallet({ paymentId: 33, orderId: 'a_b' })).rejects.toThrow(InvalidInputError);
    expect(server.requests).toHaveLength(1);
    await expect(
      (await clientOfResponse('{"result":1}')).getPaymentWallet({ paymentId: 1, orderId: 'a' }),
    ).rejects.toThrow(GatewayInvalidResponseError);
  });

  it('currencies keeps unknown fields, and every digit', async () => {
    const item = '{"payment_id":10,"rate":0.5,"exact":0.123456789012345678,"tiny":1e-30,"x":{"y":[null,true,"z"]}}';
    const body = gzipSync(`{"result":1,"list":[${item}]}`);
    const client = await clientOfResponse(httpResponse(200, body, ['Content-Encoding: gzip']));
    expect(await client.currencies()).toEqual([
      { payment_id: 10, rate: 0.5, exact: '0.123456789012345678', tiny: 1e-30, x: { y: [null, true, 'z'] } },
    ]);
    for (const list of ['{}', '[1]', '[[]]', '[null]']) {
      const other = await clientOfResponse(`{"result":1,"list":${list}}`);
      await expect(other.currencies()).rejects.toThrow(GatewayInvalidResponseError);
    }
  });

  it.each([
    ['"12.50"', '12.50'],
    ['12345678901234567.123', '12345678901234567.123'],
    ['{"USD":{"free":"1"},"list":[1]}', { USD: { free: '1' }, list: [1] }],
  ])('balance %s', async (given, expected) => {
    const client = await clientOfResponse(`{"result":1,"balance":${given}}`);
    expect(await client.balance()).toEqual(expected);
  });

  it('a balance that is missing is no balance of zero', async () => {
    await expect((await clientOfResponse('{"result":1}')).balance()).rejects.toThrow(GatewayInvalidResponseError);
  });
});

const probe = async (response: Buffer | string, signal = new AbortController().signal): Promise<void> =>
  (await clientOfResponse(response)).probe(signal);

it.each([
  ['a balance', '{"result":1,"balance":"5"}'],
  ['a balance of another shape', '{"result":1}'],
  ['a refusal', '{"result":0,"message":"wrong hash"}'],
])('a probe is content with %s', async (_, response) => {
  await expect(probe(response)).resolves.toBeUndefined();
});

it('a probe fails where a proxy answers for the gateway, and where it is ended', async () => {
  await expect(probe(httpResponse(502, '<html>Bad gateway</html>'))).rejects.toThrow(
    /^The gateway did not respond to \/balance: /,
  );
  const server = await startForTest('http', { onRequest: () => undefined });
  const client = clientOf(server);
  await expect(client.probe(AbortSignal.timeout(200))).rejects.toThrow(GatewayUnavailableError);
  client.close();
});

it.each<[string, Buffer, new (...args: never[]) => Error, RegExp]>([
  ['refused, 500', httpResponse(500, '{"result":0,"message":"Bad hash"}'), GatewayRejectedError, /Bad hash/],
  ['redirect', httpResponse(302, '', ['Location: /']), GatewayInvalidResponseError, /302/],
  ['HTML 502', httpResponse(502, '<html>'), GatewayUnavailableError, /502/],
  ['silence', Buffer.from(''), GatewayUnavailableError, /no complete response within 150 ms/],
  ['never ending', Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'), GatewayUnavailableError, /150 ms/],
  ['101', Buffer.from('HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'), GatewayUnavailableError, /./],
])('a query that fails %s', async (name, response, type, message) => {
  const endsByTimeout = ['silence', 'never ending', '101'].includes(name);
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
