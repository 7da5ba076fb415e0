import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/gateway/v2/endpoints.js';
import { call, type Merchant, type Reply, runSandbox, sign, withdraw } from './support/running-sandbox.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { afterTest } from '../worker/support/close-after-test.js';

type V2 = NonNullable<SandboxOptions['v2']>;

const WALLET = 'TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE';
const ORDER = { paymentId: 6, addressTo: WALLET, amount: '10', orderId: 'a1' };

/** Shares no code with the client. */
const signJson = ({ platformId, secretKey }: Merchant, body: string) =>
  sign(`${platformId};${body};${secretKey}`, secretKey);

async function post(url: string, body: string, signature: string, type = 'application/json') {
  const headers = { 'content-type': type, 'x-signature': signature };
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual' });
  return { status: response.status, body: (await response.json()) as Reply };
}

async function ask(merchant: Merchant, path: string, fields: object) {
  const body = JSON.stringify({ platformId: merchant.platformId, ...fields });
  return post(`${merchant.url}/v2/${path}`, body, signJson(merchant, body));
}

const pays = async (merchant: Merchant, change: object = {}) =>
  (await ask(merchant, 'withdraw', { ...ORDER, ...change })).body;

it('a payment settles, and is found by each of its names, in both generations', async () => {
  const { merchant, sandbox, clock } = await runSandbox({ settleAfterMs: 3000 });
  const paid = await pays(merchant);
  const [payment] = sandbox.payments();
  const { transactionId } = paid;
  expect(paid).toEqual({
    result: 1,
    paymentId: 6,
    addressTo: WALLET,
    amount: '10',
    transactionId: payment?.transactionId,
  });
  const byId = { transactionId };
  expect((await ask(merchant, 'withdrawstatus', byId)).body).toMatchObject({ approve: 0, txhash: '' });
  clock.advance(3000);
  const settled = await ask(merchant, 'withdrawstatus', byId);
  expect(settled).toMatchObject({
    status: 200,
    body: { approve: 1, transactionId, txhash: payment?.txhash, amount: '10' },
  });
  expect(await ask(merchant, 'withdrawstatus', { orderId: 'a1' })).toEqual(settled);
  const first = await call(merchant, 'transactionstatus', { platform_id: '1001', txhash: String(payment?.txhash) });
  expect(first).toMatchObject({ result: 1, approve: 1 });
});

it.each([
  ['v1', 'v2'],
  ['v2', 'v1'],
])('one withdrawal per second: a call of %s and one of %s count together', async (...order) => {
  const { merchant, sandbox, clock } = await runSandbox();
  const [first, second] = order.map((api) => async () => (api === 'v1' ? withdraw(merchant) : pays(merchant)));
  expect(await first?.()).toMatchObject({ result: 1 });
  clock.advance(999);
  expect(await second?.()).toEqual({ result: 0, message: 'account blocked' });
  expect(sandbox.stats()).toMatchObject({ blocked: true, arrivals: 2, payments: 1, calls: { withdraw: 2 } });
  expect(await call(merchant, 'balance', { platform_id: '1001' })).toMatchObject({ message: 'account blocked' });
  expect((await ask(merchant, 'balance', {})).body).toMatchObject({ message: 'account blocked' });
});

it.each<[V2, string, boolean]>([
  [{}, 'r/1', true],
  [{}, 'r\\/1', true],
  [{ signed: 'slashes-escaped' }, 'r/1', false],
  [{ signed: 'slashes-escaped' }, 'r\\/1', true],
  [{ signed: 'slashes-escaped' }, 'r:é', false],
  [{ signed: 'slashes-escaped' }, 'r:\\u00e9', true],
  [{ signed: 'slashes-plain' }, 'r/1', true],
  [{ signed: 'slashes-plain' }, 'r\\/1', false],
])('with %j, a signature of the bytes with %s as sent is right: %s', async (v2, spelled, isRight) => {
  const { merchant } = await runSandbox({ v2 });
  const body = `{"platformId":1001,"paymentId":6,"addressTo":"${spelled}","amount":"10"}`;
  const reply = await post(`${merchant.url}/v2/withdraw`, body, signJson(merchant, body));
  expect(reply.body).toMatchObject(isRight ? { result: 1 } : { result: 0, message: 'wrong signature' });
});

it('a strict gateway refuses a body whose bytes are not those that were signed, and takes no arrival from it', async () => {
  const { merchant, sandbox } = await runSandbox();
  const body = JSON.stringify({ platformId: 1001, ...ORDER });
  const url = `${merchant.url}/v2/withdraw`;
  const signature = signJson(merchant, body);
  for (const [sent, signed, message] of [
    [body.replace('"10"', '"11"'), signature, 'wrong signature'],
    [body.replace(':', ' :'), signature, 'wrong signature'],
    [body, '0'.repeat(64), 'wrong signature'],
    [body, '', 'wrong signature'],
    [body, sign(body, merchant.secretKey), 'wrong signature'],
    [body.replace('1001', '7'), signature, 'unknown platformId'],
    [body.replace('1001', '"1001"'), signature, 'unknown platformId'],
    ['[1]', signature, 'the body is no JSON object'],
    [body.slice(1), signature, 'the body is no JSON object'],
  ] as const)
    expect((await post(url, sent, signed)).body).toEqual({ result: 0, message });
  expect(await post(url, body, signature, 'text/plain')).toMatchObject({ status: 415 });
  expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, blocked: false });
});

it('a strict gateway refuses a bad field, showing the value that was sent', async () => {
  const { merchant, sandbox, clock } = await runSandbox();
  for (const [change, message] of [
    [{ amount: 10 }, /^amount: must /],
    [{ paymentId: '6' }, /^paymentId: must .*got "6"/],
    [{ paymentId: 77 }, /^unknown paymentId 77$/],
    [{ paymentId: 4, addressTo: 'rNoTag' }, /^addressTo must be address:tag/],
    [{ symbol: 'usd' }, /^symbol: must .*got "usd"/],
    [{ orderId: 'a_b' }, /^orderId: must .*got "a_b"/],
    [{ colour: 'red' }, /^colour: is not a known field/],
  ] as const) {
    clock.advance(1000);
    expect(await pays(merchant, change)).toEqual({ result: 0, message: expect.stringMatching(message) as unknown });
  }
  for (const fields of [{}, { transactionId: 'a', orderId: 'b' }, { transactionId: 'a b' }]) {
    expect(await ask(merchant, 'withdrawstatus', fields)).toMatchObject({ status: 400, body: { result: 0 } });
  }
  expect(sandbox.stats()).toMatchObject({ payments: 0, arrivals: 7 });
});

it.each<[V2, (merchant: Merchant, advance: (ms: number) => void) => Promise<unknown>, unknown]>([
  [{}, async (merchant) => (await ask(merchant, 'withdrawstatus', { orderId: 'x' })).status, 400],
  [
    { failedStatusCode: 200 },
    async (merchant) => ask(merchant, 'withdrawstatus', { orderId: 'x' }),
    { status: 200, body: { result: 0 } },
  ],
  [
    { orderIds: 'refused' },
    async (merchant) => pays(merchant),
    { result: 0, message: 'orderId: is not a known field' },
  ],
  [
    { orderIds: 'ignored' },
    async (merchant) => [await pays(merchant), (await ask(merchant, 'withdrawstatus', { orderId: 'a1' })).body],
    [{ result: 1 }, { result: 0, message: 'withdrawal not found' }],
  ],
  [
    { orderIdKnownAfterMs: 500 },
    async (merchant, advance) => {
      await pays(merchant);
      const find = async () => (await ask(merchant, 'withdrawstatus', { orderId: 'a1' })).body['result'];
      advance(499);
      const early = await find();
      advance(1);
      return [early, await find()];
    },
    [0, 1],
  ],
  [
    {},
    async (merchant, advance) => {
      await pays(merchant);
      advance(1000);
      return pays(merchant);
    },
    { result: 1 },
  ],
  [
    { refusesRepeatedOrderId: true },
    async (merchant, advance) => {
      await pays(merchant);
      advance(1000);
      return pays(merchant);
    },
    { result: 0, message: 'orderId was used before' },
  ],
  [
    {},
    async (merchant) => pays(merchant, { paymentId: 4, addressTo: 'r:1', amount: '1', symbol: 'USD' }),
    { amount: '1.895734597156398104' },
  ],
  [{ amounts: 'as-asked' }, async (merchant) => pays(merchant, { symbol: 'USD' }), { amount: '10' }],
  [
    { statusNamesPayment: false },
    async (merchant) => {
      await pays(merchant);
      return Object.keys((await ask(merchant, 'withdrawstatus', { orderId: 'a1' })).body).includes('transactionId');
    },
    false,
  ],
])('open point, read as %j', async (v2, act, expected) => {
  const { merchant, clock } = await runSandbox({ v2 });
  const seen = await act(merchant, (ms) => {
    clock.advance(ms);
  });
  if (typeof expected === 'object') expect(seen).toMatchObject(expected as object);
  else expect(seen).toBe(expected);
});

it('a fault strikes a call of either generation', async () => {
  const { merchant, sandbox, clock } = await runSandbox({
    faults: [
      { kind: 'no-txhash', times: 1 },
      { kind: 'redirect-307', endpoint: 'balance', times: 1 },
    ],
  });
  expect(await pays(merchant)).toEqual({ result: 1, paymentId: 6, addressTo: WALLET, amount: '10' });
  clock.advance(1000);
  expect(await pays(merchant)).toHaveProperty('transactionId');
  const body = '{"platformId":1001}';
  const headers = { 'content-type': 'application/json', 'x-signature': signJson(merchant, body) };
  const moved = await fetch(`${merchant.url}/v2/balance`, { method: 'POST', headers, body, redirect: 'manual' });
  expect([moved.status, moved.headers.get('location')]).toEqual([307, '/v2/balance']);
  expect(sandbox.stats().faultsFired).toEqual({ 'no-txhash': 1, 'redirect-307': 1 });
});

const page = readFileSync(new URL('../../docs/gateway-api-v2.md', import.meta.url), 'utf8');

/** As the page says. */
const ACCOUNT = { platformId: 1001, secretKey: 'example-secret-key', balance: '1000' };

/** In the page's order. */
const examples = [
  ...page.matchAll(
    /```http\n(\w+) (\S+)\nContent-Type: (\S+)\nx-signature: (\w+)\n\n([^\n]+)\n```\n\n```json\n(.*?)```/gs,
  ),
].map(([, method, path = '', contentType, signature = '', body = '', response = '']) => ({
  ...{ method, path, contentType, signature, body },
  response: JSON.parse(response) as Reply,
}));

it('docs/gateway-api-v2.md has examples for each endpoint, in one story, which the sandbox answers as it says', async () => {
  for (const block of ['```http', '```json']) expect(page.split(`${block}\n`)).toHaveLength(examples.length + 1);
  const paths = Object.values(ENDPOINTS).map(({ path }) => `/${path}`);
  expect(new Set(examples.map(({ path }) => path))).toEqual(new Set(paths));
  const { merchant } = await runSandbox({ accounts: [ACCOUNT] });
  const account = { ...merchant, ...ACCOUNT };
  for (const { method, path, contentType, signature, body, response } of examples) {
    expect([method, contentType, signature]).toEqual(['POST', 'application/json', signJson(account, body)]);
    const actual: Record<string, unknown> = { ...(await post(`${merchant.url}${path}`, body, signature)).body };
    // It differs from run to run.
    if ('transactionId' in actual) actual['transactionId'] = response['transactionId'];
    const documented = response['list'];
    if (Array.isArray(documented)) actual['list'] = (actual['list'] as unknown[]).slice(0, documented.length);
    expect({ path, body, reply: actual }).toEqual({ path, body, reply: response });
  }
  const [, signed = ''] = /body = '(.*)'/.exec(page) ?? [];
  expect(examples.map(({ body }) => body)).toContain(signed);
});

it('docs/gateway-api-v2.md names each switch of the sandbox', () => {
  const switches: readonly (keyof V2)[] = [
    'orderIds',
    'orderIdKnownAfterMs',
    'refusesRepeatedOrderId',
    'signed',
    'amounts',
    'failedStatusCode',
    'statusNamesPayment',
  ];
  for (const name of switches) expect(page).toContain(`| \`${name}\``);
});

/** A merchant's server: what it received, and how it answers. */
async function receiver(status = 200) {
  const received: { readonly body: string; readonly signature: unknown; readonly type: unknown }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { 'x-signature': signature, 'content-type': type } = request.headers;
      received.push({ body: Buffer.concat(chunks).toString(), signature, type });
      response.writeHead(status).end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  afterTest(() => {
    server.closeAllConnections();
  });
  afterTest(() => server.close());
  return { received, webhookUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/PLATFORM_ID` };
}

it.each([
  ['sent', 1],
  ['repeated', 6],
  ['forged', 1],
] as const)('a webhook is posted once a payment has settled (%s)', async (webhooks, times) => {
  const { received, webhookUrl } = await receiver();
  const { merchant, sandbox } = await runSandbox({ settleAfterMs: 300, v2: { webhookUrl, webhooks } });
  const { transactionId } = await pays(merchant);
  expect(received).toEqual([]);
  await until('it was posted', () => received.length === times);
  for (const { body, signature, type } of received) {
    expect(type).toBe('application/json');
    const [payment] = sandbox.payments();
    expect(JSON.parse(body)).toEqual({
      ...{ platformId: 1001, transactionId, orderId: 'a1', paymentId: 6, addressTo: WALLET, amount: '10', approve: 1 },
      txhash: payment?.txhash,
    });
    expect(signature === signJson(merchant, body)).toBe(webhooks !== 'forged');
  }
  // The first generation sends none.
  await withdraw(merchant);
  await delay(500);
  expect(received).toHaveLength(times);
});

it('a webhook that is lost is never posted; one that is early comes before the response', async () => {
  const { received, webhookUrl } = await receiver();
  const lost = await runSandbox({ settleAfterMs: 0, v2: { webhookUrl, webhooks: 'lost' } });
  await pays(lost.merchant);
  const early = await runSandbox({ settleAfterMs: 1e9, latencyAfterMs: 500, v2: { webhookUrl, webhooks: 'early' } });
  const paying = pays(early.merchant);
  await until('it was posted', () => received.length === 1);
  expect(await Promise.race([paying, delay(0)])).toBeUndefined();
  const { transactionId } = await paying;
  expect(received.map(({ body }) => JSON.parse(body) as Reply)).toMatchObject([{ transactionId, approve: 0 }]);
});

it('a webhook that is not answered with 200 is posted twice more, then never', async () => {
  const { received, webhookUrl } = await receiver(404);
  const { merchant } = await runSandbox({ settleAfterMs: 0, v2: { webhookUrl } });
  await pays(merchant);
  await until('it was posted three times', () => received.length === 3);
  await delay(800);
  expect(new Set(received.map(({ body, signature }) => `${String(signature)} ${body}`)).size).toBe(1);
  expect(received).toHaveLength(3);
});
