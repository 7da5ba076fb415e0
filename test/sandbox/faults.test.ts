import { expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import type { FaultKind } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { call, FORM, post, runSandbox, SECRET_KEY, signForm, withdrawFields } from './support/running-sandbox.js';
import type { Merchant } from './support/running-sandbox.js';

async function seen(response: Response) {
  return { status: response.status, text: await response.text(), location: response.headers.get('location') };
}

async function withdrawOnce(merchant: Merchant, addressTo = 'wallet') {
  return seen(await post(`${merchant.url}/withdraw`, signForm(merchant, withdrawFields(merchant, { addressTo }))));
}

it.each<[FaultKind, number, RegExp, number]>([
  ['html-502', 502, /^<html>/, 1],
  ['json-500', 500, /^{"message":"internal error"}$/, 1],
  ['wrong-json', 200, /^{"status":"ok","data":\[1,2,3]}$/, 1],
  ['no-txhash', 200, /^{"result":1,"address_to":"wallet","payment_id":6,"amount":"10"}$/, 1],
  ['string-result', 200, /^{"result":"1",.*"txhash":/, 1],
  ['redirect-307', 307, /^$/, 0],
  ['rate-429', 429, /^{"result":0,"message":"too many requests"}$/, 0],
  ['reject', 200, /^{"result":0,"message":"rejected by the sandbox"}$/, 0],
  ['block', 200, /^{"result":0,"message":"account blocked"}$/, 0],
])('%s responds with %d', async (kind, status, text, payments) => {
  const { merchant, sandbox, clock } = await runSandbox({ faults: [{ kind, times: 1 }] });
  const seen = await withdrawOnce(merchant);
  expect(seen).toEqual({
    status,
    text: expect.stringMatching(text),
    location: kind === 'redirect-307' ? '/withdraw' : null,
  });
  expect(sandbox.stats()).toMatchObject({ payments, arrivals: 1, blocked: false, faultsFired: { [kind]: 1 } });
  clock.advance(1000);
  expect((await withdrawOnce(merchant)).text).toContain('"result":1');
});

it.each<[FaultKind, number, number]>([
  ['drop-before', 0, 0],
  ['drop-after', 1, 1],
  ['truncated', 1, 1],
])('%s: %d payments, %d arrivals', async (kind, payments, arrivals) => {
  const { merchant, sandbox } = await runSandbox({ faults: [{ kind }] });
  await expect(withdrawOnce(merchant)).rejects.toThrow();
  expect(sandbox.stats()).toMatchObject({ payments, arrivals, calls: { withdraw: 1 } });
});

it.each<[FaultKind, number]>([
  ['hang', 1],
  ['hang-before', 0],
])('%s never responds: %d payments', async (kind, payments) => {
  const { merchant, sandbox } = await runSandbox({ faults: [{ kind }] });
  const outcome = withdrawOnce(merchant).catch(() => 'ended');
  expect(await Promise.race([outcome, delay(200, 'waiting')])).toBe('waiting');
  expect(sandbox.stats()).toMatchObject({ payments, arrivals: payments });
  await sandbox.close();
  expect(await outcome).toBe('ended');
});

it.each<[FaultKind, number]>([
  ['latency-before', 0],
  ['latency-after', 1],
])('%s: %d payments after half of the delay', async (kind, payments) => {
  const { merchant, sandbox } = await runSandbox({ faults: [{ kind, delayMs: 400 }] });
  const response = withdrawOnce(merchant);
  await delay(200);
  expect(sandbox.stats().payments).toBe(payments);
  expect((await response).status).toBe(200);
});

it('a call that is on its way arrives although its sender has closed the connection', async () => {
  const { merchant, sandbox } = await runSandbox({ latencyBeforeMs: 400 });
  const sender = new AbortController();
  const init = { method: 'POST', body: signForm(merchant, withdrawFields(merchant)), headers: FORM };
  const asked = fetch(`${merchant.url}/withdraw`, { ...init, signal: sender.signal });
  while (sandbox.stats().calls.withdraw === 0) await delay(1);
  sender.abort();
  await expect(asked).rejects.toThrow();
  expect(sandbox.stats().payments).toBe(0);
  await until('the payment is made', () => sandbox.stats().payments === 1, 5_000);
});

it('a fault meets one in N calls, at most K, of whom it names', async () => {
  const message = 'wallet closed';
  const { merchant, sandbox, clock } = await runSandbox({ faults: [{ kind: 'reject', message, every: 3, times: 2 }] });
  const outcomes: string[] = [];
  for (let index = 0; index < 10; index += 1) {
    clock.advance(1000);
    outcomes.push((await withdrawOnce(merchant)).text);
  }
  const rejected = `{"result":0,"message":"${message}"}`;
  expect(outcomes.map((text) => (text === rejected ? '-' : '+')).join('')).toBe('++-++-++++');
  expect(sandbox.faults()).toMatchObject([{ kind: 'reject', every: 3, fired: 2 }]);

  sandbox.setFaults([
    { kind: 'reject', addresses: ['chosen'] },
    { kind: 'wrong-json', endpoint: 'balance', platformId: 1001 },
    { kind: 'block', platformId: 4 },
  ]);
  sandbox.addFaults([{ kind: 'json-500', endpoint: 'transactionstatus', addresses: ['other'] }]);
  clock.advance(1000);
  expect((await withdrawOnce(merchant, 'other')).text).toContain('"result":1');
  clock.advance(1000);
  expect((await withdrawOnce(merchant, 'chosen')).text).toContain('"result":0');
  expect(await call(merchant, 'balance', { platform_id: '1001' })).toMatchObject({ status: 'ok' });
  expect(await call(merchant, 'currencies', { platform_id: '1001' })).toMatchObject({ result: 1 });
  const status = { platform_id: '1001', txhash: sandbox.payments().at(-1)?.txhash ?? '' };
  expect(await call(merchant, 'transactionstatus', status)).toEqual({ message: 'internal error' });
});

async function control(url: string, method: string, path: string, given?: unknown) {
  const body = typeof given === 'string' ? given : JSON.stringify(given);
  return seen(await fetch(`${url}/__sandbox/${path}`, { method, ...(given !== undefined && { body }) }));
}

it('the control endpoints return what the methods return, and never the secret', async () => {
  const { merchant, sandbox } = await runSandbox();
  await withdrawOnce(merchant);
  const paths = ['stats', 'stats?platformId=1001', 'arrivals', 'payments', 'faults', 'unknown', 'stats?platformId=2'];
  const replies = await Promise.all(paths.map((path) => control(sandbox.url, 'GET', path)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 404, 400]);
  const [stats, , arrivals, payments] = replies.slice(0, 5).map(({ text }) => JSON.parse(text) as object);
  expect([stats, arrivals]).toEqual([sandbox.stats(), { arrivals: sandbox.arrivals() }]);
  expect(payments).toEqual({ payments: sandbox.payments() });
  for (const { text } of replies) expect(text).not.toContain(SECRET_KEY);
  expect(JSON.stringify(sandbox)).not.toContain(SECRET_KEY);
});

it('the control endpoints change the faults, and refuse what is no change of them', async () => {
  const { sandbox } = await runSandbox({ faults: [{ kind: 'hang' }] });
  const change = async (body: unknown) => control(sandbox.url, 'POST', 'faults', body);
  await change({ add: [{ kind: 'reject', times: 1 }] });
  expect(sandbox.faults().map(({ kind }) => kind)).toEqual(['hang', 'reject']);
  await change({ replace: [{ kind: 'drop-after' }] });
  expect(sandbox.faults().map(({ kind }) => kind)).toEqual(['drop-after']);
  expect(await change({ clear: true })).toMatchObject({ status: 200, text: '{"faults":[]}' });
  for (const [body, message] of [
    ['{', 'body: must be JSON'],
    [{ clear: true, add: [] }, 'must be one of'],
    [{ add: [{ kind: 'latency-after' }] }, 'delayMs'],
    [{ add: [{ kind: 'fire' }] }, 'add.0.kind: must be one of latency-before'],
    [{ add: [{ kind: 'hang', endpoint: 'balance', addresses: ['a'] }] }, 'addresses'],
  ] as const)
    expect(await change(body)).toMatchObject({ status: 400, text: expect.stringContaining(message) });
  expect(sandbox.faults()).toEqual([]);
});

it('the control endpoints unblock, reset, pause and continue', async () => {
  const { merchant, sandbox } = await runSandbox();
  for (let index = 0; index < 2; index += 1) await withdrawOnce(merchant);
  expect(sandbox.stats().blocked).toBe(true);
  await control(sandbox.url, 'POST', 'unblock?platformId=1001');
  expect(sandbox.stats()).toMatchObject({ blocked: false, arrivals: 2 });
  await control(sandbox.url, 'POST', 'reset');
  expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, balance: '1000000000000', smallestGapMs: null });
  await control(sandbox.url, 'POST', 'pause');
  const held = withdrawOnce(merchant);
  expect(await Promise.race([held, delay(150, 'held')])).toBe('held');
  expect(sandbox.stats().payments).toBe(1);
  await control(sandbox.url, 'POST', 'continue');
  expect((await held).status).toBe(200);
});
