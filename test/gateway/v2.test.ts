import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  type Gateway,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../../src/gateway/gateway.js';
import { pathOf } from '../../src/gateway/open-gateway.js';
import { startSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { httpResponse, startForTest } from './support/raw-gateway.js';
import { recordingLogger, SECRET_KEY, v2Of } from './support/test-client.js';

/** The second generation of the API against its bytes, and against each reading of its open points. */

type V2 = NonNullable<SandboxOptions['v2']>;

const REQUEST = { paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
const ORDER_ID = '5f3a9c1e7b2d4860a1b2c3d4e5f60718';

async function send(gateway: Gateway, request: WithdrawRequest = REQUEST, orderId?: string): Promise<WithdrawOutcome> {
  const connection = await gateway.openConnection(new AbortController().signal);
  return connection.withdraw(request, { mayWrite: () => true, ...(orderId !== undefined && { orderId }) });
}

async function withSandbox(v2: V2 = {}, options: Partial<SandboxOptions> = {}) {
  const accounts = [{ platformId: 4242, secretKey: SECRET_KEY }];
  const sandbox = closeAfterTest(await startSandbox({ accounts, v2, ...options }));
  const gateway = v2Of({ baseUrl: sandbox.url });
  return { sandbox, gateway };
}

/** A gateway that answers each request with one body. */
async function answering(body: string, status = 200) {
  const server = await startForTest('http', {
    onRequest: ({ stream }) => void stream.write(httpResponse(status, body)),
  });
  return { server, gateway: v2Of(server) };
}

const requestOf = (text = '') => {
  const [head = '', body = ''] = Buffer.from(text, 'latin1').toString('utf8').split('\r\n\r\n');
  return { line: head.split('\r\n')[0], signature: /x-signature: (\w+)/i.exec(head)?.[1], head, body };
};

it('traces name the path of each call', async () => {
  const { server, gateway } = await answering('{"result":0,"message":"no"}');
  const [own, queries] = [
    await send(gateway),
    [gateway.getStatus('77'), gateway.readCurrencies(), gateway.readBalances([])],
  ];
  expect([own.kind, (await Promise.allSettled(queries)).map(({ status }) => status)]).toEqual([
    ...['rejected', ['rejected', 'rejected', 'rejected']],
  ]);
  const asked = server.requests.map((text) => /^POST \/api\/v1\/(\S+) /.exec(text)?.[1]).sort();
  const calls = ['withdraw', 'transactionstatus', 'currencies', 'balance'] as const;
  expect(calls.map((call) => pathOf('v2', call)).sort()).toEqual(asked);
  expect(calls.map((call) => pathOf('v1', call))).toEqual(calls);
});

describe('the bytes of a request', () => {
  it.each<[string, WithdrawRequest, string]>([
    ['plain', REQUEST, '"addressTo":"TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf","amount":"12.5"'],
    ['a symbol', { ...REQUEST, symbol: 'USD' }, '"amount":"12.5","symbol":"USD"'],
    ['a slash', { ...REQUEST, addressTo: 'r:a/b"c\\' }, '"addressTo":"r:a\\/b\\"c\\\\"'],
    ['letters beyond ASCII', { ...REQUEST, addressTo: 'r:Zoë 😀' }, '"addressTo":"r:Zo\\u00eb \\ud83d\\ude00"'],
  ])('are those that were signed: %s', async (_name, request, spelled) => {
    const { server, gateway } = await answering('{"result":1,"transactionId":"77"}');
    expect(await send(gateway, request, ORDER_ID)).toMatchObject({ kind: 'accepted', gatewayId: '77' });
    const { line, signature, head, body } = requestOf(server.requests[0]);
    expect(line).toBe('POST /api/v1/v2/withdraw HTTP/1.1');
    expect(head).toMatch(/content-type: application\/json\r\n/i);
    expect(body).toMatch(/^\{"platformId":4242,"paymentId":6,"addressTo":/);
    expect(body).toContain(spelled);
    expect(body).toMatch(new RegExp(`,"orderId":"${ORDER_ID}"}$`));
    const signed = createHmac('sha256', SECRET_KEY).update(`4242;${body};${SECRET_KEY}`).digest('hex');
    expect(signature).toBe(signed);
    expect(JSON.parse(body)).toEqual({ platformId: 4242, ...request, orderId: ORDER_ID });
  });

  it.each<[string, Partial<WithdrawRequest>, string]>([
    ['an amount', { amount: '1,5' }, 'amount'],
    ['a symbol', { symbol: 'usd' }, 'symbol'],
  ])('do not leave for %s that breaks a rule', async (_name, change, field) => {
    const { server, gateway } = await answering('{}');
    const outcome = await send(gateway, { ...REQUEST, ...change });
    expect(outcome).toEqual({ kind: 'not_sent', reason: `the request breaks the gateway's rules for ${field}` });
    expect(server.receivedBytes).toBe(0);
  });
});

describe('a response', () => {
  it.each<[string, number, Partial<WithdrawOutcome>]>([
    ['{"result":1,"transactionId":187649984473770}', 200, { kind: 'accepted', gatewayId: '187649984473770' }],
    ['{"result":"1","transactionId":"a-7","txhash":""}', 200, { kind: 'accepted', gatewayId: 'a-7' }],
    ['{"result":1,"transactionId":90071992547409931}', 200, { kind: 'accepted', gatewayId: '90071992547409931' }],
    ['{"result":1,"transactionId":"7","txhash":"0xab"}', 200, { kind: 'accepted', gatewayId: '7', txhash: '0xab' }],
    ['{"result":0,"message":"minimum amount is 10"}', 400, { kind: 'rejected', message: 'minimum amount is 10' }],
    ['{"result":1,"transactionId":7,"transactionId":8}', 200, { kind: 'unknown' }],
    ['{"result":1,"transactionId":"7"}', 302, { kind: 'unknown', httpStatus: 302 }],
    ['{"message":"maintenance"}', 503, { kind: 'unknown', httpStatus: 503 }],
  ])('%s with HTTP %d', async (body, status, expected) => {
    const { gateway } = await answering(body, status);
    expect(await send(gateway)).toMatchObject(expected);
  });

  it('that repeats the payment differently is accepted, and logged without its values', async () => {
    const { server } = await answering(
      '{"result":1,"transactionId":"7","paymentId":9,"addressTo":"TOther","amount":"2"}',
    );
    const logger = recordingLogger();
    expect(await send(v2Of(server, { logger }))).toMatchObject({ kind: 'accepted' });
    expect(logger.lines.flatMap(({ fields }) => Object.entries(fields))).toContainEqual([
      'differing',
      ['paymentId', 'addressTo', 'amount'],
    ]);
    expect(JSON.stringify(logger.lines)).not.toMatch(/TOther|TXYZ/);
  });

  it.each<[string, object]>([
    [
      '{"result":1,"approve":1,"paymentId":"6","addressTo":"T","amount":12.50,"txhash":"ab","feeNetwork":"1"}',
      { kind: 'paid', paymentId: 6, addressTo: 'T', amount: '12.5', isAmountNumber: true, txhash: 'ab' },
    ],
    ['{"result":1,"approve":"0","txhash":"","transactionId":77}', { kind: 'pending' }],
    ['{"result":1,"approve":2}', { kind: 'failed' }],
  ])('to a status: %s', async (body, status) => {
    const { server, gateway } = await answering(body);
    expect(await gateway.getStatus('77')).toEqual(status);
    expect(requestOf(server.requests[0]).body).toBe('{"platformId":4242,"transactionId":"77"}');
    gateway.close();
  });

  it.each<[string, number, 'getStatus' | 'findPayment', unknown]>([
    ['{"result":1,"approve":1,"transactionId":"78"}', 200, 'getStatus', GatewayInvalidResponseError],
    ['{"result":1,"approve":1,"orderId":"other"}', 200, 'findPayment', GatewayInvalidResponseError],
    ['{"result":1,"approve":3}', 200, 'getStatus', GatewayInvalidResponseError],
    ['{"result":1}', 200, 'findPayment', GatewayInvalidResponseError],
    ['{"result":0,"message":"withdrawal not found"}', 400, 'getStatus', GatewayRejectedError],
    ['{"result":0,"message":"withdrawal not found"}', 400, 'findPayment', GatewayRejectedError],
  ])('%s with HTTP %d to %s is an error', async (body, status, method, error) => {
    const { gateway } = await answering(body, status);
    await expect(gateway[method]?.('77')).rejects.toBeInstanceOf(error);
    gateway.close();
  });

  it.each<[string, object]>([
    [
      '{"result":1,"list":[{"paymentId":6,"currency":"USDT","network":"Tron","minAmount":"5"}]}',
      { isWhole: true, currencies: [{ paymentId: 6, name: 'USDT', minimum: '5', chain: 'Tron' }] },
    ],
    [
      '{"result":1,"currencies":[{"id":6,"name":"USDT"},{"name":"?"}]}',
      { isWhole: false, currencies: [{ paymentId: 6 }] },
    ],
  ])('with a list of another form is read leniently: %s', async (body, expected) => {
    const { gateway } = await answering(body);
    expect(await gateway.readCurrencies()).toMatchObject(expected);
    gateway.close();
  });
});

const find = async (gateway: Gateway) => gateway.findPayment?.(ORDER_ID);

describe('each reading of an open point', () => {
  it.each<V2>([
    {},
    { orderIds: 'ignored' },
    { refusesRepeatedOrderId: true },
    { orderIdKnownAfterMs: 60_000 },
    { statusNamesPayment: false },
    { failedStatusCode: 200 },
    { amounts: 'as-asked' },
    { signed: 'slashes-escaped' },
    { signed: 'slashes-plain' },
  ])('a payout is paid and followed: %j', async (v2) => {
    const { sandbox, gateway } = await withSandbox(v2, { settleAfterMs: 0, minGapMs: 0 });
    const outcome = await send(gateway, REQUEST, ORDER_ID);
    const [payment] = sandbox.payments();
    expect(outcome).toMatchObject({ kind: 'accepted', gatewayId: payment?.transactionId });
    const status = await gateway.getStatus(payment?.transactionId ?? '');
    expect(status).toMatchObject({ kind: 'paid', txhash: payment?.txhash });
    expect(gateway.comparePayment(status, REQUEST)).toEqual([]);
    await expect(gateway.getStatus('187649984473770')).rejects.toBeInstanceOf(GatewayRejectedError);
    gateway.close();
  });

  it.each<[V2, string | undefined]>([
    [{}, 'names it'],
    [{ statusNamesPayment: false }, 'does not name it'],
    [{ orderIds: 'ignored' }, undefined],
    [{ orderIdKnownAfterMs: 60_000 }, undefined],
    [{ orderIdKnownAfterMs: 60_000, failedStatusCode: 200 }, undefined],
  ])('a look-up by order id finds the payment, or is an error: %j', async (v2, expected) => {
    const { sandbox, gateway } = await withSandbox(v2);
    await send(gateway, REQUEST, ORDER_ID);
    const [payment] = sandbox.payments();
    if (expected === undefined) await expect(find(gateway)).rejects.toBeInstanceOf(GatewayRejectedError);
    else {
      const found = await find(gateway);
      expect(found?.gatewayId).toBe(expected === 'names it' ? payment?.transactionId : undefined);
      expect(found && gateway.comparePayment(found, REQUEST)).toEqual([]);
    }
    gateway.close();
  });

  it('a gateway that refuses order ids rejects, and pays nothing', async () => {
    const { sandbox, gateway } = await withSandbox({ orderIds: 'refused' });
    expect(await send(gateway, REQUEST, ORDER_ID)).toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining('orderId') as unknown as string,
    });
    expect(sandbox.payments()).toEqual([]);
  });

  it('a gateway that refuses a repeated order id rejects the second, which is about this payout only', async () => {
    const { sandbox, gateway } = await withSandbox({ refusesRepeatedOrderId: true }, { minGapMs: 0 });
    await send(gateway, REQUEST, ORDER_ID);
    expect(await send(gateway, REQUEST, ORDER_ID)).toMatchObject({
      kind: 'rejected',
      message: 'orderId was used before',
    });
    expect(sandbox.payments()).toHaveLength(1);
  });

  it.each<[V2['signed'], boolean]>([
    ['as-sent', true],
    ['slashes-escaped', true],
    ['slashes-plain', false],
  ])('a slash is signed for a gateway that checks %s: %s', async (signed, isRight) => {
    const { sandbox, gateway } = await withSandbox({ signed });
    const outcome = await send(gateway, { ...REQUEST, addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf:a/é' });
    expect(sandbox.payments()).toHaveLength(isRight ? 1 : 0);
    if (isRight) expect(outcome.kind).toBe('accepted');
    else {
      expect(outcome).toMatchObject({ kind: 'rejected', message: 'wrong signature' });
      expect(gateway.classifyStop('wrong signature', 200).blockedReason).toMatch(/wrong credentials/);
    }
  });

  it.each<V2['amounts']>(['coin', 'as-asked'])('with a symbol, an amount %s is no difference', async (amounts) => {
    const { gateway } = await withSandbox({ amounts });
    const request = { paymentId: 9, addressTo: REQUEST.addressTo, amount: '12.5', symbol: 'USD' };
    const outcome = await send(gateway, request);
    const status = await gateway.getStatus(outcome.kind === 'accepted' ? outcome.gatewayId : '');
    expect(status.amount === '12.5').toBe(amounts === 'as-asked');
    expect(gateway.comparePayment(status, request)).toEqual([]);
    gateway.close();
  });
});

it('lists, balance and deposit address are those of the sandbox', async () => {
  const { gateway } = await withSandbox();
  const { currencies, isWhole } = await gateway.readCurrencies();
  expect([isWhole, currencies.find(({ paymentId }) => paymentId === 6)]).toMatchObject([
    true,
    { name: 'USDT (TRC-20)', usdRate: '1' },
  ]);
  expect((await gateway.readBalances(currencies)).balances).toEqual([
    expect.objectContaining({ amount: '1000000000000' }),
  ]);
  expect(await gateway.getPaymentWallet?.({ paymentId: 5, orderId: 'deposit-17' })).toMatchObject({
    address: expect.stringMatching(/^sandboxTON/) as unknown,
  });
  gateway.close();
});
