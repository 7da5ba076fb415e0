import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { ENDPOINTS } from '../../src/gateway/v1/endpoints.js';
import { startSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { call, post, sign, signForm, withdraw, withdrawFields } from './support/running-sandbox.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

const BLOCKED = { result: 0, message: 'account blocked' };

const wrongly = (body: string): [body: string, message: string] => [body, 'wrong signature'];

it('the endpoints settle a payment when its time has come, to the millisecond', async () => {
  const { merchant, clock } = await runSandbox({ settleAfterMs: 3000 });
  const paid = await withdraw(merchant, { amount: '12.50', symbol: 'USD' });
  const status = { platform_id: '1001', txhash: String(paid['txhash']) };
  clock.advance(2999);
  expect(await call(merchant, 'transactionstatus', status)).toEqual({ ...paid, approve: 0, fee: '1' });
  clock.advance(1);
  expect(await call(merchant, 'transactionstatus', status)).toMatchObject({ approve: 1 });
  expect(await call(merchant, 'balance', { platform_id: '1001' })).toEqual({ result: 1, balance: '999999999987.5' });
});

it('the endpoints keep the balance to the last decimal place and refuse what it cannot pay', async () => {
  const account = { platformId: 1001, secretKey: SECRET_KEY, balance: '6425.050000000000000001' };
  const { merchant, clock, sandbox } = await runSandbox({ accounts: [account] });
  await withdraw(merchant, { paymentId: 1, amount: '0.1' });
  expect(sandbox.stats().balance).toBe('0.000000000000000001');
  clock.advance(1000);
  const tooMuch = await withdraw(merchant, { amount: '0.000000000000000002' });
  expect(tooMuch).toEqual({ result: 0, message: 'insufficient balance' });
  clock.advance(1000);
  expect(await withdraw(merchant, { amount: '0.000000000000000001' })).toMatchObject({ result: 1 });
  expect(sandbox.stats()).toMatchObject({ balance: '0', payments: 2 });
});

it('a strict gateway refuses a body whose bytes are not those that were signed', async () => {
  const { merchant, sandbox } = await runSandbox();
  const body = signForm(merchant, withdrawFields(merchant));
  for (const [changed, message] of [
    ...[body.replace('amount=10', 'amount=11'), body.replace('amount=10', 'amount=1%30')].map(wrongly),
    ...[body.replace(/&hash=.*/, ''), body.replace(/hash=.{6}/, 'hash=zzzzzz')].map(wrongly),
    wrongly(`${body}&hash=${'0'.repeat(64)}`),
    wrongly(signForm({ ...merchant, secretKey: 'other' }, withdrawFields(merchant))),
    [body.replace('platform_id=1001', 'platform_id=7'), 'unknown platform_id'],
    ['%zz=1', 'the body is no valid form'],
  ] as const)
    expect(await (await post(`${merchant.url}/withdraw`, changed)).json()).toEqual({ result: 0, message });
  // Only the account itself can use up its limit.
  expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, blocked: false });
});

it('a strict gateway refuses a bad field, showing the value that was sent', async () => {
  const { merchant, sandbox, clock } = await runSandbox();
  const good: Record<string, Record<string, string>> = {
    withdraw: withdrawFields(merchant),
    transactionstatus: { platform_id: '1001' },
    getpaymentwallet: { payment_id: '6', platform_id: '1001' },
  };
  for (const [endpoint, field, ...values] of [
    ['withdraw', 'amount', '1.0E-5', '0', '12,50', '0.0000000000000000001'],
    ['withdraw', 'payment_id', '0', 'six'],
    ['withdraw', 'address_to', '', 'with space', 'r:'],
    ['withdraw', 'symbol', 'usd'],
    ['transactionstatus', 'txhash', 'a b'],
    ['getpaymentwallet', 'order_id', 'a_b'],
  ] as const) {
    for (const sent of values) {
      clock.advance(1000);
      const { message } = await call(merchant, endpoint, { ...good[endpoint], [field]: sent });
      expect(message).toMatch(new RegExp(`^${field}: (must|ends|has) .*\\(got "${sent}"\\)$`));
    }
  }
  expect(sandbox.stats()).toMatchObject({ payments: 0 });
});

it('a strict gateway refuses fields in another order, missing or unknown, and what it does not know', async () => {
  const { merchant, clock } = await runSandbox();
  const { payment_id, ...others } = withdrawFields(merchant);
  for (const [fields, message] of [
    [{ ...others, payment_id }, 'wrong field order: expected payment_id, platform_id, amount, address_to'],
    [others, 'payment_id is missing'],
    [{ ...withdrawFields(merchant), colour: 'red' }, 'unknown field colour'],
    [withdrawFields(merchant, { paymentId: 4, addressTo: 'rNoTag' }), 'address_to must be address:destinationTag'],
    [withdrawFields(merchant, { paymentId: 77 }), 'unknown payment_id'],
  ] as const) {
    clock.advance(1000);
    const reply = await call(merchant, 'withdraw', fields);
    expect(reply).toEqual({ result: 0, message: expect.stringContaining(message) as unknown });
  }
  const unknown = { platform_id: '1001', txhash: 'abc' };
  expect(await call(merchant, 'transactionstatus', unknown)).toEqual({ result: 0, message: 'unknown txhash' });
});

it('a strict gateway refuses another method, content type or path, and a body beyond the limit', async () => {
  const { merchant } = await runSandbox();
  const get = await fetch(`${merchant.url}/balance`);
  expect([get.status, get.headers.get('allow'), await get.json()]).toMatchObject([405, 'POST', { result: 0 }]);
  const headers = { 'content-type': 'application/json' };
  const json = await fetch(`${merchant.url}/balance`, { method: 'POST', body: '{}', headers });
  expect([json.status, await json.json()]).toMatchObject([415, { result: 0 }]);
  expect((await post(`${merchant.url}/payout`, '')).status).toBe(404);
  const long = await post(`${merchant.url}/balance`, `platform_id=1001&x=${'a'.repeat(2_000_000)}`);
  expect([long.status, await long.json()]).toEqual([413, { result: 0, message: 'the body is too large' }]);
});

it('one withdrawal per second: accepts withdrawals 1000 ms apart, and blocks the account at 999.999 ms', async () => {
  const { merchant, clock, sandbox } = await runSandbox();
  await withdraw(merchant, { addressTo: 'first' });
  clock.advance(1000);
  // One that is refused for another reason counts as well.
  expect(await withdraw(merchant, { amount: 'much' })).toMatchObject({ result: 0 });
  expect(sandbox.stats()).toMatchObject({ blocked: false, arrivals: 2, smallestGapMs: 1000, meanGapMs: 1000 });
  clock.advance(999.999);
  expect(await withdraw(merchant, { addressTo: 'third' })).toEqual(BLOCKED);
  clock.advance(60_000);
  expect(await withdraw(merchant)).toEqual(BLOCKED);
  expect(await call(merchant, 'balance', { platform_id: '1001' })).toEqual(BLOCKED);
  expect(sandbox.stats()).toMatchObject({ blocked: true, payments: 1, arrivals: 4 });
  expect(sandbox.stats().smallestGapMs).toBeCloseTo(999.999, 6);
  expect(sandbox.arrivals()[2]).toMatchObject({ addressTo: 'third', amount: '10' });
  sandbox.unblock();
  clock.advance(1000);
  expect(await withdraw(merchant)).toMatchObject({ result: 1 });
});

it('one withdrawal per second: applies to each account and to no other call, with its own gap', async () => {
  const accounts = [1001, 1002].map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
  const { merchant, sandbox, clock } = await runSandbox({ accounts, minGapMs: 50 });
  const other = { ...merchant, platformId: 1002 };
  for (const each of [merchant, other]) expect(await withdraw(each)).toMatchObject({ result: 1 });
  for (let index = 0; index < 3; index += 1) await call(merchant, 'balance', { platform_id: '1001' });
  clock.advance(50);
  expect(await withdraw(other)).toMatchObject({ result: 1 });
  clock.advance(49);
  await withdraw(other);
  expect(sandbox.stats(1001)).toMatchObject({ blocked: false, arrivals: 1, calls: { withdraw: 1, balance: 3 } });
  expect(sandbox.stats(1002)).toMatchObject({ blocked: true, arrivals: 3, smallestGapMs: 49 });
  expect(sandbox.stats(1002).blockedReason).toBe('two withdrawals arrived 49 ms apart, the minimum is 50 ms');
  expect(() => sandbox.stats()).toThrow('platformId: must be one of 1001, 1002');
});

it('one withdrawal per second: measures in real time when the request was received completely, not when it began', async () => {
  const { merchant, sandbox } = await runSandbox({ clock: systemClock, latencyAfterMs: 1 });
  await withdraw(merchant, { addressTo: 'first' });
  // Sent well after the previous one, but with less latency: network jitter does this to a sender that paces by sends.
  await delay(1010);
  sandbox.setFaults([{ kind: 'latency-before', delayMs: 600, addresses: ['slow'] }]);
  const slow = withdraw(merchant, { addressTo: 'slow' });
  await delay(1010);
  expect(sandbox.stats().blocked).toBe(false);
  expect(await withdraw(merchant, { addressTo: 'fast' })).toEqual(BLOCKED);
  expect(await slow).toMatchObject({ result: 1 });
  expect(sandbox.stats().smallestGapMs).toBeLessThan(1000);
});

it('payments made twice are reported per recipient and amount, in whatever notation', async () => {
  const { merchant, clock, sandbox } = await runSandbox();
  for (const payment of ['a 5', 'a 5.0', 'a 6', 'b 5']) {
    const [addressTo = '', amount = ''] = payment.split(' ');
    clock.advance(1000);
    await withdraw(merchant, { addressTo, amount });
  }
  const stats = sandbox.stats();
  expect(stats.paymentsPerAddress).toEqual({ a: 3, b: 1 });
  const [first, again] = sandbox.payments();
  const twice = { addressTo: 'a', amount: '5', txhashes: [first?.txhash, again?.txhash] };
  expect(stats.duplicatePayments).toEqual([twice]);
});

const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];

it.each<[object, string]>([
  [{ accounts: [...accounts, ...accounts] }, 'accounts: must not name a platformId twice'],
  [{ accounts: [{ ...accounts[0], key: SECRET_KEY }] }, 'key: is not a known field'],
  [{ accounts: [{ ...accounts[0], balance: 12 }] }, 'accounts.0.balance: must be a decimal string'],
])('a sandbox refuses %j, and shows no secret', async (options, message) => {
  const failure = (await startSandbox(options as SandboxOptions).catch((error: unknown) => error)) as Error;
  expect(failure.name).toBe('InvalidInputError');
  expect(failure.message).toContain(message);
  expect(failure.message).not.toContain(SECRET_KEY);
});

it('a sandbox never processes a call that was cut off, even where its body looks complete', async () => {
  const { sandbox, merchant } = await runSandbox();
  const body = signForm(merchant, withdrawFields(merchant));
  const socket = connect(sandbox.port, '127.0.0.1');
  await once(socket, 'connect');
  const type = 'content-type: application/x-www-form-urlencoded';
  socket.end(`POST /withdraw HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${body.length + 1}\r\n\r\n${body}`);
  await once(socket.resume(), 'close');
  await call(merchant, 'balance', { platform_id: '1001' });
  expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, calls: { withdraw: 0 } });
});

it('a sandbox lets chosen recipients and a share of the payments end in error', async () => {
  const outcomes = async () => {
    const draws = { seed: 42, failShare: 0.5, failAddresses: ['bad'], settleAfterMs: 0 };
    const { merchant, sandbox, clock } = await runSandbox({ ...draws, latencyBeforeMs: { min: 0, max: 2 } });
    for (let index = 0; index < 24; index += 1) {
      clock.advance(1000);
      await withdraw(merchant, { addressTo: index < 4 ? 'bad' : 'good' });
    }
    return sandbox.payments().map(({ settlesAs }) => settlesAs);
  };
  const first = await outcomes();
  expect(first.slice(0, 4)).toEqual([2, 2, 2, 2]);
  expect(new Set(first.slice(4))).toEqual(new Set([1, 2]));
  expect(await outcomes()).toEqual(first);
});

const page = readFileSync(new URL('../../docs/gateway-api-v1.md', import.meta.url), 'utf8');

/** As the page says. */
const ACCOUNT = { platformId: 1001, secretKey: 'example-secret-key', balance: '1000' };
const NO_SIGNATURE = '0'.repeat(64);

/** In the page's order. The payload is the body without the signature. */
const examples = [
  ...page.matchAll(/```http\n(\w+) (\S+)\nContent-Type: (\S+)\n\n(\S+)&hash=(\w+)\n```\n\n```json\n(.*?)```/gs),
].map(([, method, path = '', contentType, payload = '', hash = '', response = '']) => ({
  ...{ method, path, contentType, payload, hash },
  response: JSON.parse(response) as Readonly<Record<string, unknown>>,
}));

it('docs/gateway-api-v1.md has examples for each endpoint, in one story, which the sandbox answers as it says', async () => {
  for (const block of ['```http', '```json']) expect(page.split(`${block}\n`)).toHaveLength(examples.length + 1);
  const paths = Object.values(ENDPOINTS).map(({ path }) => `/${path}`);
  expect(new Set(examples.map(({ path }) => path))).toEqual(new Set(paths));
  const signOfPage = (payload: string) => sign(payload, ACCOUNT.secretKey);
  const { sandbox } = await runSandbox({ accounts: [ACCOUNT] });
  /** What the sandbox returned in place of the page's transaction. */
  let txhashes: readonly [documented: string, actual: string] = ['', ''];
  for (const { method, path, contentType, payload, hash, response } of examples) {
    expect([method, contentType]).toEqual(['POST', 'application/x-www-form-urlencoded']);
    expect([NO_SIGNATURE, signOfPage(payload)]).toContain(hash);

    const actualPayload = payload.replace(...txhashes);
    const actualHash = hash === NO_SIGNATURE ? hash : signOfPage(actualPayload);
    const reply = await post(`${sandbox.url}${path}`, `${actualPayload}&hash=${actualHash}`);
    const body = (await reply.json()) as Record<string, unknown>;

    if (path === '/withdraw' && body['result'] === 1) txhashes = [String(response['txhash']), String(body['txhash'])];
    if (body['txhash'] === txhashes[1]) body['txhash'] = txhashes[0];
    const documented = response['list'];
    if (Array.isArray(documented)) body['list'] = (body['list'] as unknown[]).slice(0, documented.length);
    expect({ path, payload, status: reply.status, body }).toEqual({ path, payload, status: 200, body: response });
  }
  const [, signed = ''] = /payload = '(.*)'/.exec(page) ?? [];
  expect(examples.map(({ hash }) => hash)).toContain(signOfPage(signed));
});

it('docs/gateway-api-v1.md lists the signed fields of each endpoint in their order', () => {
  const rows = [...page.matchAll(/^\| `\/(\w+)` +\| (.*?) *\|$/gm)].map(([, path, fields]) => [path, fields]);
  const expected = Object.values(ENDPOINTS).map(({ path, signedFields }) => [
    path,
    signedFields.map((name) => `\`${name}\``).join(', '),
  ]);
  expect(rows).toEqual(expected);
});
