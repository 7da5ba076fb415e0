import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ROUTES } from '../../src/http/routes.js';
import { fuzzDoor, type OpenApi } from './fuzz/fuzz-door.js';
import { startMasterWithReplica } from '../support/replicated-redis.js';
import { type Answer, type AskOptions, openDoor, payout, type DoorRig } from './support/door-rig.js';

let rig: DoorRig;

beforeAll(async () => {
  rig = await openDoor();
});

afterAll(async () => rig.close());

const post = async (body: unknown): Promise<Answer> => rig.ask('POST', '/v1/payouts', { body });
const PROBLEM = 'application/problem+json';

it('creates a payout once, knows the same again, and names the fields that differ', async () => {
  const accepted = { payoutId: 'p-1', state: 'queued' };
  const first = await post(payout('p-1'));
  expect(first).toMatchObject({ status: 201, type: 'application/json' });
  expect(first.body).toEqual({ ...accepted, created: true });
  const again = await post(payout('p-1', { amount: '12.50' }));
  expect(again).toMatchObject({ status: 200, body: { ...accepted, created: false } });
  const detail = expect.stringContaining('different amount, reference');
  const body = { status: 409, code: 'CONFLICT', fields: ['amount', 'reference'], detail };
  const other = await post(payout('p-1', { amount: '13', reference: 'x' }));
  expect(other).toMatchObject({ status: 409, type: PROBLEM, body });
});

it('answers 201 once the replicas of Redis have the payout, and 503 while they do not', async () => {
  const servers = await startMasterWithReplica();
  const door = await openDoor({ redisUrl: servers.master.url });
  const enqueue = async (id: string) => door.ask('POST', '/v1/payouts', { body: payout(id) });
  try {
    expect(await enqueue('p-1')).toMatchObject({ status: 201 });
    servers.link.silence(['requests', 'replies']);
    expect(await enqueue('p-2')).toMatchObject({
      status: 503,
      body: { detail: expect.stringMatching(/only 0 of 1 replicas acknowledged it.*asking again is safe/) },
    });
  } finally {
    await door.close();
    await servers.close();
  }
});

it('takes 1,000 at once: conflicts neither stop the others nor hide', async () => {
  const many = Array.from({ length: 1_000 }, (_, index) => payout(`m-${index}`));
  expect(await post(many)).toMatchObject({ status: 201, body: { created: 1_000, existing: 0, conflicts: 0 } });
  expect(await post(many)).toMatchObject({ status: 200, body: { existing: 1_000 } });
  const mixed = await post([payout('m-1'), payout('m-1', { amount: '1' }), payout('m-new')]);
  const results = [
    { kind: 'existing', payoutId: 'm-1', state: 'queued', created: false },
    { kind: 'conflict', payoutId: 'm-1', state: 'queued', fields: ['amount'] },
    { kind: 'created', payoutId: 'm-new', state: 'queued', created: true },
  ];
  const body = { code: 'CONFLICT', created: 1, existing: 1, conflicts: 1, results };
  expect(mixed).toMatchObject({ status: 409, type: PROBLEM, body });
});

it('enqueues nothing beside what breaks a rule, and names the field', async () => {
  const message = 'must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)';
  const one = await post(payout('n-1', { amount: 12.5 }));
  expect(one).toMatchObject({ status: 400, type: PROBLEM });
  expect(one.body).toEqual({
    ...{ type: 'about:blank', title: 'Bad Request', status: 400, code: 'INVALID_INPUT' },
    ...{ detail: `amount: ${message}`, problems: [{ field: 'amount', message }] },
  });
  const many = await post([payout('n-1'), payout('n-2', { amount: 1, adressTo: 'x' })]);
  expect(many.body.problems.map(({ field }) => field)).toEqual(['[1].amount', '[1].adressTo']);
  expect((await rig.ask('GET', '/v1/payouts/n-1')).status).toBe(404);
});

const body = payout('p-t');
const deep = JSON.stringify(body).replace('}', `,"metadata":${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
it.each<[string, number, string, AskOptions?, string?]>([
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { body: [] }, 'must not be empty'],
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { body: Array(1_001).fill(body) }, 'must be at most 1000 in one request'],
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { text: '{"payoutId":' }],
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { text: Buffer.from('"\u00ff"', 'latin1') }],
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { text: deep }],
  [
    'POST /v1/payouts',
    400,
    'INVALID_INPUT',
    { text: JSON.stringify(body).replace('{', '{"amount":"1",') },
    'has "amount" twice',
  ],
  ['POST /v1/payouts', 400, 'INVALID_INPUT', { text: '[{"\\u0061":1,"a":2}]' }, 'has "a" twice'],
  ['POST /v1/payouts', 413, 'TOO_LARGE', { text: ' '.repeat(1_048_577) }],
  ['POST /v1/payouts', 415, 'NOT_JSON', { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
  ['POST /v1/payouts', 415, 'NOT_JSON', { body, headers: { 'content-type': 'application/json; charset=latin1' } }],
  ['POST /v1/payouts', 415, 'NOT_JSON', { body, headers: { 'content-encoding': 'gzip' } }],
  ['GET /v1/payouts', 400, 'INVALID_INPUT', {}, 'must name a state or a batch'],
  ['GET /v1/payouts?state=queued&limit=1001', 400, 'INVALID_INPUT', {}, 'must be a whole number from 1 to 1000'],
  ['GET /v1/payouts?state=queued&cursor=x', 400, 'INVALID_INPUT', {}, 'must be the next of the page before'],
  ['POST /v1/payouts/p-1/cancel', 400, 'INVALID_INPUT', { body: { by: 'ann' } }, 'by: is not a known field'],
  ['GET /v1/events?after=1-', 400, 'INVALID_INPUT'],
  ['GET /v1/events?after=1-1&after=2-2', 400, 'INVALID_INPUT'],
  ['DELETE /v1/payouts', 405, 'METHOD_NOT_ALLOWED'],
  ['GET /v1/payouts/%ff', 404, 'NO_SUCH_ROUTE'],
])('%s is refused: %i %s', async (request, status, code, options = {}, message = '') => {
  const [method = '', path = ''] = request.split(' ');
  const answer = await rig.ask(method, path, options);
  expect(answer).toMatchObject({ status, body: { code, detail: expect.stringContaining(message) } });
  if (status === 405) expect(answer.headers.get('allow')).toMatch(/^[A-Z, ]+$/);
  if (status === 413) expect(answer.headers.get('connection')).toBe('close');
});

it('reads a payout with its history, and the counts of the account', async () => {
  const id = 'a/b+c=:.,_-';
  const given = { reference: 'Žofie 💸', metadata: { order: 7 } };
  await post(payout(id, given));
  const { body: read } = await rig.ask('GET', `/v1/payouts/${encodeURIComponent(id)}`);
  expect(read).toMatchObject({ payoutId: id, amount: '12.5', state: 'queued', ...given });
  expect(read.history).toEqual([{ at: expect.any(String), to: 'queued' }]);
  const { body: stats } = await rig.ask('GET', '/v1/stats');
  expect(stats).toMatchObject({ platformId: rig.platformId, paused: false, completed: 0 });
  expect(stats.queued).toBeGreaterThan(0);
});

it('reads a page by state or batch, and the next one', async () => {
  await post(['l-0', 'l-1', 'l-2'].map((payoutId) => payout(payoutId, { batch: 'pages' })));
  const page = async (query: string): Promise<Answer['body']> => (await rig.ask('GET', `/v1/payouts?${query}`)).body;
  const first = await page('batch=pages&limit=2');
  expect(first).toMatchObject({ payouts: [{ payoutId: 'l-0' }, { payoutId: 'l-1' }], next: expect.any(String) });
  const second = await page(`batch=pages&limit=2&cursor=${first.next}`);
  expect(second).toMatchObject({ payouts: [{ payoutId: 'l-2' }], next: null });
  expect(await page('state=completed')).toEqual({ payouts: [], next: null });
});

it('finds one payout by its id as a page, for a proxy that would change the path', async () => {
  await post(payout('a/b', {}));
  const ask = async (query: string) => rig.ask('GET', `/v1/payouts?${query}`);
  expect((await ask('payoutId=a%2Fb')).body).toMatchObject({ payouts: [{ payoutId: 'a/b' }], next: null });
  expect((await ask('payoutId=nobody')).body).toEqual({ payouts: [], next: null });
  for (const query of ['payoutId=a%2Fb&limit=1', 'payoutId=x%2F..%2Fa']) expect((await ask(query)).status).toBe(400);
});

it.each(['.', '..', 'x/../victim', '../victim', 'x/.', './x', 'x/..'])(
  'refuses the id %s, which a proxy would take for a folder',
  async (payoutId) => {
    const { status, body } = await post(payout(payoutId));
    expect({ status, problems: body.problems }).toMatchObject({ status: 400, problems: [{ field: 'payoutId' }] });
  },
);

it.each(['...', 'x..y', '.x', 'x.', 'a/.b/c..'])('takes the id %s', async (payoutId) => {
  expect((await post(payout(payoutId))).status).toBe(201);
  expect((await rig.ask('GET', `/v1/payouts/${encodeURIComponent(payoutId)}`)).status).toBe(200);
});

it('cancels in the name of the token', async () => {
  await post(payout('c-1'));
  const cancelled = await rig.ask('POST', '/v1/payouts/c-1/cancel', { body: { reason: 'ticket 7' } });
  expect(cancelled).toMatchObject({ status: 200, body: { payoutId: 'c-1', state: 'cancelled', final: true } });
  const entry = { from: 'queued', to: 'cancelled', by: 'shop', reason: 'ticket 7' };
  expect(cancelled.body.history.at(-1)).toMatchObject(entry);
  const again = await rig.ask('POST', '/v1/payouts/c-1/cancel');
  expect(again).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
  const fields = { by: 'shop', platformId: rig.platformId, status: 200, payoutId: 'c-1' };
  expect(rig.logged).toContainEqual({ fields, message: '/v1/payouts/{payoutId}/cancel' });
});

it('the OpenAPI document and docs/http.md have every route, and refer to what is there', async () => {
  const response = await fetch(`${rig.door.url}/openapi.json`);
  const document = (await response.json()) as OpenApi & { readonly components: { readonly schemas: object } };
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(routes.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  const rows = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8').split('\n');
  for (const { method, path, right } of ROUTES) {
    const row = rows.find((line) => line.startsWith(`| \`${method} ${path.replace('{payoutId}', '{id}')}`));
    expect(row).toContain(`\`${right}\``);
  }
  for (const [, name = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
    expect(document.components.schemas).toHaveProperty(name);
});

it('text that a terminal would obey is escaped in every answer, and in events', async () => {
  const reference = 'a\u009b31m\u202eb';
  const url = `${rig.door.url}/v1/payouts`;
  const headers = { authorization: `Bearer ${rig.tokens.all}`, 'content-type': 'application/json' };
  const strange = payout('c1\u009b', { reference });
  for (const [method, path, body] of [
    ['POST', '', JSON.stringify(strange)],
    ['GET', `/${encodeURIComponent('c1\u009b\u202e')}`, undefined],
    ['GET', `?state=${encodeURIComponent('\u202e\u0085')}`, undefined],
  ] as const) {
    const text = await (await fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body }) })).text();
    expect(text).toMatch(/\\u(009b|202e|0085)/);
    expect(text).not.toMatch(/[\u0080-\u009f\u202a-\u202e]/);
  }
});

it('1,000 requests made from the OpenAPI document get no 5xx, and only what it says', async () => {
  const made = { requests: 1_000, seed: 7 };
  const { statuses, wrong, accepted } = await fuzzDoor(rig.door.url, Object.values(rig.tokens), made);
  expect(wrong).toEqual([]);
  // The requests reach everything.
  expect([...statuses.keys()].sort()).toEqual(expect.arrayContaining([200, 201, 400, 401, 403, 404, 405, 409, 415]));
  expect(rig.logged.filter(({ message }) => message === 'a request failed')).toEqual([]);
  expect(accepted.size).toBeGreaterThan(2);
  for (const payoutId of accepted) {
    const path = `/v1/payouts/${encodeURIComponent(payoutId)}`;
    const found = [await rig.ask('GET', path), await rig.ask('GET', path, { token: rig.tokens.other })];
    expect(found.map(({ status }) => status)).toContain(200);
  }
}, 240_000);
