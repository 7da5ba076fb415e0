import { describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import type { FaultKind } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { call, post, signForm, withdrawFields, type Merchant } from './support/independent-client.js';
import { runSandbox } from './support/running-sandbox.js';

interface Seen {
  readonly status: number;
  readonly text: string;
}

async function withdrawOnce(merchant: Merchant, addressTo = 'wallet'): Promise<Seen> {
  const response = await post(`${merchant.url}/withdraw`, signForm(merchant, withdrawFields(merchant, { addressTo })));
  return { status: response.status, text: await response.text() };
}

describe('faults with a response', () => {
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
    expect(await withdrawOnce(merchant)).toEqual({ status, text: expect.stringMatching(text) as unknown });
    expect(sandbox.stats()).toMatchObject({ payments, arrivals: 1, blocked: false, faultsFired: { [kind]: 1 } });
    clock.advance(1000);
    expect(await withdrawOnce(merchant)).toMatchObject({
      status: 200,
      text: expect.stringContaining('"result":1') as unknown,
    });
  });

  it('redirects to the same address, where a client that follows would pay at the wrong time', async () => {
    const { merchant, sandbox } = await runSandbox({ faults: [{ kind: 'redirect-307', times: 1 }] });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = signForm(merchant, withdrawFields(merchant));
    const followed = await fetch(`${merchant.url}/withdraw`, { method: 'POST', body, headers });
    expect(await followed.json()).toEqual({ result: 0, message: 'account blocked' });
    expect(sandbox.stats()).toMatchObject({ blocked: true, arrivals: 2 });
  });

  it('rejects with a message of its own', async () => {
    const { merchant } = await runSandbox({ faults: [{ kind: 'reject', message: 'wallet closed' }] });
    expect((await withdrawOnce(merchant)).text).toBe('{"result":0,"message":"wallet closed"}');
  });
});

describe('faults that break the connection', () => {
  it.each<[FaultKind, number, number]>([
    ['drop-before', 0, 0],
    ['drop-after', 1, 1],
    ['truncated', 1, 1],
  ])('%s: %d payments, %d arrivals', async (kind, payments, arrivals) => {
    const { merchant, sandbox } = await runSandbox({ faults: [{ kind }] });
    await expect(withdrawOnce(merchant)).rejects.toThrow();
    expect(sandbox.stats()).toMatchObject({ payments, arrivals, calls: { withdraw: 1 } });
  });

  it('truncated sends a part of the body first', async () => {
    const { merchant } = await runSandbox({ faults: [{ kind: 'truncated' }] });
    const response = await post(`${merchant.url}/withdraw`, signForm(merchant, withdrawFields(merchant)));
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(0);
    await expect(response.text()).rejects.toThrow();
  });

  it.each<[FaultKind, number]>([
    ['hang', 1],
    ['hang-before', 0],
  ])('%s never responds: %d payments', async (kind, payments) => {
    const { merchant, sandbox } = await runSandbox({ faults: [{ kind }] });
    const outcome = withdrawOnce(merchant).then(
      () => 'responded',
      () => 'ended',
    );
    expect(await Promise.race([outcome, delay(200, 'waiting')])).toBe('waiting');
    expect(sandbox.stats()).toMatchObject({ payments, arrivals: payments });
    await sandbox.close();
    expect(await outcome).toBe('ended');
  });
});

describe('latencies', () => {
  it.each<[FaultKind, number]>([
    ['latency-before', 0],
    ['latency-after', 1],
  ])('%s: %d payments after half of the delay', async (kind, payments) => {
    const { merchant, sandbox } = await runSandbox({ faults: [{ kind, delayMs: 400 }] });
    const begunMs = performance.now();
    const response = withdrawOnce(merchant);
    await delay(200);
    expect(sandbox.stats().payments).toBe(payments);
    expect((await response).status).toBe(200);
    expect(performance.now() - begunMs).toBeGreaterThan(390);
  });

  it('a call that is on its way arrives although its sender has closed the connection', async () => {
    const { merchant, sandbox } = await runSandbox({ latencyBeforeMs: 1000 });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = signForm(merchant, withdrawFields(merchant));
    const sender = new AbortController();
    const { signal } = sender;
    const call = fetch(`${merchant.url}/withdraw`, { method: 'POST', body, headers, signal });
    while (sandbox.stats().calls.withdraw === 0) await delay(1);
    sender.abort();
    await expect(call).rejects.toThrow();
    expect(sandbox.stats().payments).toBe(0);
    await until('the payment is made', () => sandbox.stats().payments > 0, 5_000);
    expect(sandbox.stats().payments).toBe(1);
  });

  it('while paused, calls are processed and responses held until it continues', async () => {
    const { merchant, sandbox } = await runSandbox();
    sandbox.pause();
    const response = withdrawOnce(merchant);
    expect(await Promise.race([response, delay(150, 'held')])).toBe('held');
    expect(sandbox.stats().payments).toBe(1);
    sandbox.continue();
    expect((await response).status).toBe(200);
  });
});

describe('which calls meet a fault', () => {
  it('one in N, at most K, chosen recipients, an endpoint, an account', async () => {
    const { merchant, sandbox, clock } = await runSandbox({ faults: [{ kind: 'reject', every: 3, times: 2 }] });
    const outcomes: boolean[] = [];
    for (let index = 0; index < 10; index += 1) {
      clock.advance(1000);
      outcomes.push((await withdrawOnce(merchant)).text.includes('"result":1'));
    }
    expect(outcomes.map((paid) => (paid ? '+' : '-')).join('')).toBe('++-++-++++');
    expect(sandbox.faults()).toMatchObject([{ kind: 'reject', every: 3, fired: 2 }]);

    sandbox.setFaults([
      { kind: 'reject', addresses: ['chosen'] },
      { kind: 'wrong-json', endpoint: 'balance', platformId: 1001 },
      { kind: 'block', platformId: 4 },
    ]);
    clock.advance(1000);
    expect((await withdrawOnce(merchant, 'other')).text).toContain('"result":1');
    clock.advance(1000);
    expect((await withdrawOnce(merchant, 'chosen')).text).toContain('"result":0');
    expect(await call(merchant, 'balance', { platform_id: '1001' })).toMatchObject({ status: 'ok' });
    expect(await call(merchant, 'currencies', { platform_id: '1001' })).toMatchObject({ result: 1 });
  });

  it('the status calls of chosen recipients', async () => {
    const { merchant, sandbox } = await runSandbox();
    await withdrawOnce(merchant, 'chosen');
    sandbox.addFaults([{ kind: 'json-500', endpoint: 'transactionstatus', addresses: ['chosen'] }]);
    const txhash = sandbox.payments()[0]?.txhash ?? '';
    expect(await call(merchant, 'transactionstatus', { platform_id: '1001', txhash })).toEqual({
      message: 'internal error',
    });
  });
});
