import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { systemClock } from '../../src/base/clock.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { silentLogger } from '../../src/base/logger.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { testRedisUrl } from '../support/account.js';
import { type AskOptions, openDoor, payout, type DoorRig } from './support/door-rig.js';

let rig: DoorRig;

beforeAll(async () => {
  rig = await openDoor();
});

afterAll(async () => {
  await rig.close();
});

describe('POST /v1/payouts', () => {
  it('creates, knows the same again, and names the fields that differ', async () => {
    const first = await rig.ask('POST', '/v1/payouts', { body: payout('p-1') });
    expect(first).toMatchObject({ status: 201, type: 'application/json' });
    expect(first.body).toEqual({ payoutId: 'p-1', state: 'queued', created: true });
    const again = await rig.ask('POST', '/v1/payouts', { body: payout('p-1', { amount: '12.50' }) });
    expect(again).toMatchObject({ status: 200, body: { payoutId: 'p-1', state: 'queued', created: false } });
    const other = await rig.ask('POST', '/v1/payouts', { body: payout('p-1', { amount: '13', reference: 'x' }) });
    expect(other).toMatchObject({ status: 409, type: 'application/problem+json' });
    expect(other.body).toMatchObject({ status: 409, code: 'CONFLICT', fields: ['amount', 'reference'] });
    expect(other.body.detail).toMatch(/different amount, reference/);
  });

  it('refuses an amount that is a number, with the reason', async () => {
    const { status, type, body } = await rig.ask('POST', '/v1/payouts', { body: payout('p-n', { amount: 12.5 }) });
    expect({ status, type }).toEqual({ status: 400, type: 'application/problem+json' });
    expect(body).toEqual({
      type: 'about:blank',
      title: 'Bad Request',
      status: 400,
      code: 'INVALID_INPUT',
      detail: 'amount: must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)',
      problems: [
        { field: 'amount', message: 'must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)' },
      ],
    });
    expect((await rig.ask('GET', '/v1/payouts/p-n')).status).toBe(404);
  });

  it('takes many: conflicts do not stop the others, and are not hidden behind a success', async () => {
    const many = [payout('m-1', { batch: 'm' }), payout('m-2', { batch: 'm' })];
    const first = await rig.ask('POST', '/v1/payouts', { body: many });
    expect(first).toMatchObject({ status: 201, body: { created: 2, existing: 0, conflicts: 0 } });
    expect(await rig.ask('POST', '/v1/payouts', { body: many })).toMatchObject({ status: 200, body: { existing: 2 } });
    const mixed = [...many, payout('m-1', { amount: '1', batch: 'm' }), payout('m-3', { batch: 'm' })];
    const third = await rig.ask('POST', '/v1/payouts', { body: mixed });
    expect(third).toMatchObject({ status: 409, type: 'application/problem+json' });
    expect(third.body).toMatchObject({ code: 'CONFLICT', created: 1, existing: 2, conflicts: 1 });
    expect(third.body.results).toEqual([
      { kind: 'existing', payoutId: 'm-1', state: 'queued', created: false },
      { kind: 'existing', payoutId: 'm-2', state: 'queued', created: false },
      { kind: 'conflict', payoutId: 'm-1', state: 'queued', fields: ['amount'] },
      { kind: 'created', payoutId: 'm-3', state: 'queued', created: true },
    ]);
  });

  it('enqueues none of many if one breaks a rule', async () => {
    const { status, body } = await rig.ask('POST', '/v1/payouts', {
      body: [payout('n-1'), payout('n-2', { amount: 1, adressTo: 'x' })],
    });
    expect(status).toBe(400);
    expect(body.problems.map(({ field }) => field)).toEqual(['[1].amount', '[1].adressTo']);
    expect((await rig.ask('GET', '/v1/payouts/n-1')).status).toBe(404);
  });

  it('takes 1,000', async () => {
    const body = Array.from({ length: 1_000 }, (_, index) => payout(`t-${index}`));
    expect(await rig.ask('POST', '/v1/payouts', { body })).toMatchObject({ status: 201, body: { created: 1_000 } });
  });

  const body = payout('p-t');
  const deep = JSON.stringify(body).replace('}', `,"metadata":${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
  it.each<[string, AskOptions, number, string, string?]>([
    ['an empty list', { body: [] }, 400, 'INVALID_INPUT', 'must not be empty'],
    ['1,001', { body: Array(1_001).fill(body) }, 400, 'INVALID_INPUT', 'must be at most 1000 in one request'],
    ['no body', {}, 400, 'INVALID_INPUT'],
    ['no JSON', { text: '{"payoutId":' }, 400, 'INVALID_INPUT'],
    ['bytes that are no UTF-8', { text: Buffer.from('"\u00ff"', 'latin1') }, 400, 'INVALID_INPUT'],
    ['null', { text: 'null' }, 400, 'INVALID_INPUT'],
    ['a text', { text: '"x"' }, 400, 'INVALID_INPUT'],
    ['what is nested too deeply', { text: deep }, 400, 'INVALID_INPUT'],
    ['a form', { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415, 'NOT_JSON'],
    ['plain text', { body, headers: { 'content-type': 'text/plain' } }, 415, 'NOT_JSON'],
    ['another charset', { body, headers: { 'content-type': 'application/json; charset=latin1' } }, 415, 'NOT_JSON'],
    ['what is compressed', { body, headers: { 'content-encoding': 'gzip' } }, 415, 'NOT_JSON'],
  ])('refuses %s', async (_, options, status, code, message = '') => {
    const answer = await rig.ask('POST', '/v1/payouts', options);
    expect(answer).toMatchObject({ status, body: { code } });
    expect(answer.body.detail).toContain(message);
  });

  it('refuses more than a megabyte, and ends the connection', async () => {
    const answer = await rig.ask('POST', '/v1/payouts', { text: ' '.repeat(1_048_577) });
    expect(answer).toMatchObject({ status: 413, body: { code: 'TOO_LARGE' } });
    expect(answer.headers.get('connection')).toBe('close');
  });
});

it.each([undefined, false])('a payment id that the gateway does not list, with checkPaymentIds %s', async (check) => {
  const listed = await openDoor({ checkPaymentIds: check });
  const redis = connectRedis(testRedisUrl(), 'commands', silentLogger);
  try {
    const connection = connectLedger(redis, listed.platformId, systemClock);
    const currencies = [{ paymentId: 6, name: 'USDT', usdRate: '1' }];
    await writeGatewayFacts(connection, { currencies, currenciesAt: Date.now() - 1_000, isWhole: true });
    const unlisted = payout('u-1', { paymentId: 7 });
    const one = await listed.ask('POST', '/v1/payouts', { body: unlisted });
    const many = await listed.ask('POST', '/v1/payouts', { body: [payout('u-2'), unlisted] });
    if (check === false) {
      expect([one.status, many.status]).toEqual([201, 201]);
      return;
    }
    for (const [answer, field] of [
      [one, 'paymentId'],
      [many, '[1].paymentId'],
    ] as const) {
      expect(answer).toMatchObject({ status: 400, type: 'application/problem+json', body: { code: 'INVALID_INPUT' } });
      expect(answer.body.problems).toEqual([{ field, message: expect.stringMatching(/gateway's list.+\(got 7\)/) }]);
    }
    expect((await listed.ask('GET', '/v1/payouts/u-2')).status).toBe(404);
    expect((await listed.ask('POST', '/v1/payouts', { body: payout('u-2') })).status).toBe(201);
  } finally {
    await closeRedis(redis);
    await listed.close();
  }
});

describe('what is read', () => {
  it('is the payout with its history', async () => {
    const id = 'a/b+c=:.,_-';
    await rig.ask('POST', '/v1/payouts', { body: payout(id, { reference: 'Žofie 💸', metadata: { order: 7 } }) });
    const { status, body } = await rig.ask('GET', `/v1/payouts/${encodeURIComponent(id)}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      payoutId: id,
      amount: '12.5',
      state: 'queued',
      reference: 'Žofie 💸',
      metadata: { order: 7 },
    });
    expect(body.history).toEqual([{ at: expect.any(String), to: 'queued' }]);
  });

  it('is a page by state or batch, and the next one', async () => {
    const body = Array.from({ length: 5 }, (_, index) => payout(`l-${index}`, { batch: 'pages' }));
    await rig.ask('POST', '/v1/payouts', { body });
    const ids: string[] = [];
    let cursor = '';
    do {
      const page = await rig.ask('GET', `/v1/payouts?batch=pages&limit=2${cursor}`);
      expect(page.status).toBe(200);
      ids.push(...page.body.payouts.map(({ payoutId }) => payoutId));
      cursor = page.body.next === null ? '' : `&cursor=${page.body.next}`;
    } while (cursor !== '');
    expect(ids).toEqual(['l-0', 'l-1', 'l-2', 'l-3', 'l-4']);
    expect((await rig.ask('GET', '/v1/payouts?state=completed')).body).toEqual({ payouts: [], next: null });
  });

  it.each([
    ['', 'must name a state or a batch'],
    ['?state=queued&batch=x', 'must name a state or a batch'],
    ['?state=quued', 'must be one of'],
    ['?state=queued&limit=1001', 'must be a whole number from 1 to 1000'],
    ['?state=queued&state=held', 'state'],
    ['?sate=queued', 'did you mean state'],
    ['?state=queued&cursor=x', 'must be the next of the page before'],
  ])('is refused for %j', async (query, message) => {
    const { status, body } = await rig.ask('GET', `/v1/payouts${query}`);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'INVALID_INPUT' });
    expect(body.detail).toContain(message);
  });

  it('are the counts of the account', async () => {
    const { status, body } = await rig.ask('GET', '/v1/stats');
    expect(status).toBe(200);
    expect(body).toMatchObject({ platformId: rig.platformId, paused: false, completed: 0 });
    expect(body.queued).toBeGreaterThan(0);
  });
});

describe('POST /v1/payouts/{id}/cancel', () => {
  it('cancels, in the name of the token', async () => {
    await rig.ask('POST', '/v1/payouts', { body: payout('c-1') });
    const { status, body } = await rig.ask('POST', '/v1/payouts/c-1/cancel', { body: { reason: 'ticket 7' } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ payoutId: 'c-1', state: 'cancelled' });
    expect(body.history.at(-1)).toMatchObject({ from: 'queued', to: 'cancelled', by: 'shop', reason: 'ticket 7' });
    const again = await rig.ask('POST', '/v1/payouts/c-1/cancel');
    expect(again).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(again.body.detail).toContain('cancelled');
    expect(rig.logged).toContainEqual({
      fields: { by: 'shop', platformId: rig.platformId, status: 200, payoutId: 'c-1' },
      message: '/v1/payouts/{payoutId}/cancel',
    });
  });

  it('needs no body, and takes no other name', async () => {
    await rig.ask('POST', '/v1/payouts', { body: payout('c-2') });
    expect((await rig.ask('POST', '/v1/payouts/c-2/cancel', { body: { by: 'ann' } })).body).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'by', message: expect.stringContaining('is not a known field') }],
    });
    expect((await rig.ask('POST', '/v1/payouts/c-2/cancel')).status).toBe(200);
  });
});

it.each([
  ['DELETE', '/v1/payouts', 405, 'METHOD_NOT_ALLOWED'],
  ['PUT', '/v1/payouts/p-1', 405, 'METHOD_NOT_ALLOWED'],
  ['GET', '/v1/payouts/p-1/cancel', 405, 'METHOD_NOT_ALLOWED'],
  ['GET', '/', 404, 'NO_SUCH_ROUTE'],
  ['GET', '/v1/payouts/', 404, 'NO_SUCH_ROUTE'],
  ['GET', '/v1/payouts/%ff', 404, 'NO_SUCH_ROUTE'],
  ['GET', '/metrics', 404, 'NO_SUCH_ROUTE'],
])('%s %s: %i', async (method, path, status, code) => {
  const answer = await rig.ask(method, path);
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  if (status === 405) expect(answer.headers.get('allow')).toMatch(/^[A-Z, ]+$/);
});

it('has no secret of the gateway, and knows no code that could send', async () => {
  const rules = JSON.parse(await readFile(new URL('../../.dependency-cruiser.json', import.meta.url), 'utf8')) as {
    forbidden: { name: string }[];
  };
  expect(rules.forbidden.map(({ name }) => name)).toContain('the-door-cannot-send');
});
