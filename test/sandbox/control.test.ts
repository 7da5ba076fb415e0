import { describe, expect, it } from '@jest/globals';
import { call, withdrawFields } from './support/independent-client.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

async function control(
  url: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/__sandbox/${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

describe('the control endpoints', () => {
  it('return what the methods return, and never the secret', async () => {
    const { merchant, sandbox } = await runSandbox();
    await call(merchant, 'withdraw', withdrawFields(merchant));
    const replies = await Promise.all(
      ['stats', 'stats?platformId=1001', 'arrivals', 'payments', 'faults', 'unknown', 'stats?platformId=2'].map(
        (path) => control(sandbox.url, 'GET', path),
      ),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 404, 400]);
    expect(JSON.parse(replies[0]?.text ?? '')).toEqual(sandbox.stats());
    expect(JSON.parse(replies[2]?.text ?? '')).toEqual({ arrivals: sandbox.arrivals() });
    expect(JSON.parse(replies[3]?.text ?? '')).toEqual({ payments: sandbox.payments() });
    expect(replies[6]?.text).toBe('{"error":"platformId: must be one of 1001"}');
    for (const { text } of replies) expect(text).not.toContain(SECRET_KEY);
    expect(JSON.stringify(sandbox)).not.toContain(SECRET_KEY);
  });

  it('change the faults', async () => {
    const { sandbox } = await runSandbox({ faults: [{ kind: 'hang' }] });
    await control(sandbox.url, 'POST', 'faults', { add: [{ kind: 'reject', times: 1 }] });
    expect(sandbox.faults().map(({ kind }) => kind)).toEqual(['hang', 'reject']);
    await control(sandbox.url, 'POST', 'faults', { replace: [{ kind: 'drop-after' }] });
    expect(sandbox.faults().map(({ kind }) => kind)).toEqual(['drop-after']);
    expect(await control(sandbox.url, 'POST', 'faults', { clear: true })).toEqual({
      status: 200,
      text: '{"faults":[]}',
    });
  });

  it.each([
    ['not JSON', '{', 'body: must be JSON'],
    ['nothing', undefined, 'input: is missing'],
    ['two wishes', { clear: true, add: [] }, 'must be one of'],
    ['an unknown fault', { add: [{ kind: 'fire' }] }, 'add.0.kind: must be one of latency-before'],
    ['an unknown condition', { add: [{ kind: 'hang', each: 2 }] }, 'each: is not a known field'],
    ['a latency without delay', { add: [{ kind: 'latency-after' }] }, 'delayMs'],
    [
      'a recipient of a call that has none',
      { add: [{ kind: 'hang', endpoint: 'balance', addresses: ['a'] }] },
      'addresses',
    ],
  ])('refuse %s', async (_name, body, message) => {
    const { sandbox } = await runSandbox();
    const reply = await control(sandbox.url, 'POST', 'faults', body);
    expect(reply).toEqual({ status: 400, text: expect.stringContaining(message) as unknown });
    expect(sandbox.faults()).toEqual([]);
  });

  it('unblock, reset, pause and continue', async () => {
    const { merchant, sandbox } = await runSandbox();
    await call(merchant, 'withdraw', withdrawFields(merchant));
    await call(merchant, 'withdraw', withdrawFields(merchant));
    expect(sandbox.stats().blocked).toBe(true);
    await control(sandbox.url, 'POST', 'unblock?platformId=1001');
    expect(sandbox.stats()).toMatchObject({ blocked: false, arrivals: 2 });
    await control(sandbox.url, 'POST', 'reset');
    expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, balance: '1000000000000', smallestGapMs: null });
    await control(sandbox.url, 'POST', 'pause');
    const held = call(merchant, 'balance', { platform_id: '1001' });
    await control(sandbox.url, 'POST', 'continue');
    expect(await held).toMatchObject({ result: 1 });
  });
});
