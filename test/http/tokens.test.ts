import { chmod, readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createToken, Tokens } from '../../src/http/tokens.js';
import { runInProcess } from '../cli/support/in-process.js';
import { until } from '../support/until.js';
import { EventStream, openDoor, payout, type DoorRig } from './support/door-rig.js';

/** Who may do what, and events, which last as long as their token. */

let rig: DoorRig;
const streams: EventStream[] = [];

beforeEach(async () => {
  rig = await openDoor();
});

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await rig.close();
});

const ROUTES = [
  ['POST', '/v1/payouts', 'enqueue'],
  ['GET', '/v1/payouts?state=queued', 'read'],
  ['GET', '/v1/payouts/mine', 'read'],
  ['GET', '/v1/stats', 'read'],
  ['GET', '/v1/events', 'read'],
  ['POST', '/v1/payouts/mine/cancel', 'cancel'],
] as const;

async function enqueue(...ids: readonly string[]) {
  for (const id of ids) expect((await rig.ask('POST', '/v1/payouts', { body: payout(id) })).status).toBe(201);
}

it('a request without a token that exists is refused on every route', async () => {
  for (const token of [undefined, `pq_${'x'.repeat(43)}`, 'x', 'a'.repeat(64)]) {
    for (const [method, path] of ROUTES) {
      const { status, body, headers } = await rig.ask(method, path, { token });
      expect({ path, status, code: body.code }).toEqual({ path, status: 401, code: 'UNAUTHORIZED' });
      expect(headers.get('www-authenticate')).toBe('Bearer realm="payouts"');
    }
  }
  expect(JSON.stringify(rig.logged)).not.toMatch(/pq_|x{43}/);
});

it('a request needs the right of its route, whatever else the token may', async () => {
  await enqueue('mine');
  for (const [method, path, right] of ROUTES) {
    for (const has of ['enqueue', 'read', 'cancel'] as const) {
      if (has === right) continue;
      const { status, body } = await rig.ask(method, path, { token: rig.tokens[has] });
      expect({ path, has, status, code: body.code }).toEqual({ path, has, status: 403, code: 'FORBIDDEN' });
    }
    if (path === '/v1/events') continue;
    const body = method === 'GET' ? {} : { body: path.endsWith('cancel') ? {} : payout('own') };
    expect((await rig.ask(method, path, { token: rig.tokens[right], ...body })).status).toBeLessThan(300);
  }
});

it('a request sees its own account only', async () => {
  await rig.ask('POST', '/v1/payouts', { body: payout('theirs'), token: rig.tokens.other });
  const problem = { type: 'about:blank', title: 'Not Found', status: 404, code: 'NOT_FOUND' };
  for (const id of ['theirs', 'nobodys']) {
    const missing = { ...problem, detail: `Payout ${id} not found` };
    expect((await rig.ask('GET', `/v1/payouts/${id}`)).body).toEqual(missing);
    expect((await rig.ask('POST', `/v1/payouts/${id}/cancel`)).body).toEqual(missing);
  }
  const { body } = await rig.ask('GET', '/v1/payouts?state=queued');
  expect(JSON.stringify(body)).not.toContain('theirs');
  // The same id is another payout there.
  expect((await rig.ask('POST', '/v1/payouts', { body: payout('theirs', { amount: '1' }) })).status).toBe(201);
});

it('requests and payouts count against the limit a minute of a name', async () => {
  const limited = await openDoor({}, 5);
  const many = [payout('a'), payout('b'), payout('c')];
  expect((await limited.ask('POST', '/v1/payouts', { body: many })).status).toBe(201);
  for (let index = 0; index < 2; index += 1) expect((await limited.ask('GET', '/v1/stats')).status).toBe(200);
  const refused = await limited.ask('POST', '/v1/payouts', { body: payout('d') });
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  // Another name has a limit of its own, and what was refused was not enqueued.
  expect((await limited.ask('GET', '/v1/payouts/d', { token: limited.tokens.read })).status).toBe(404);
  await limited.close();
});

it('the file of tokens is read when it changes; an unusable one leaves those before', async () => {
  const status = async (token: string) => (await rig.ask('GET', '/v1/stats', { token })).status;
  const { token, line } = createToken({ name: 'shop', account: rig.platformId, rights: ['read'] });
  expect(await status(token)).toBe(401);
  await writeFile(rig.tokensFile, `${line}\n`);
  await until('the new token counts', async () => (await status(token)) === 200);
  expect(await status(rig.tokens.all)).toBe(401);
  for (const text of ['', `- { name: x, account: 1, rights: [read], sha256: 'pq_secret' }`]) {
    await writeFile(rig.tokensFile, text);
    rig.door.reload();
    expect(await status(token)).toBe(200);
    expect(rig.logged.at(-1)?.message).toBe('the tokens could not be read again: those before still count');
    expect(JSON.stringify(rig.logged)).not.toContain('pq_secret');
    expect(await rig.metrics()).toContain('payouts_http_tokens_stale 1');
    const ready: unknown = await (await fetch(`${rig.door.healthUrl}/readyz`)).json();
    expect(ready).toEqual({ ready: true, redis: 'up', tokens: 'stale' });
  }
  await writeFile(rig.tokensFile, '[]');
  rig.door.reload();
  expect(await status(token)).toBe(401);
  expect(await rig.metrics()).toContain('payouts_http_tokens_stale 0');
});

const { token, line } = createToken({ name: 'e10', account: 7, rights: ['read'], perMinute: 60 });

async function read(text: string, mode = 0o600): Promise<Tokens> {
  const file = `${rig.tokensFile}-7`;
  await writeFile(file, text);
  await chmod(file, mode);
  return new Tokens(file, [7], false);
}

it('a token in the file is the hash of 256 bits, and who it is; not all may read it', async () => {
  expect(token).toMatch(/^pq_[\w-]{43}$/);
  expect(line).not.toContain(token.slice(3));
  const tokens = await read(`# the shop\n${line}\n`, 0o640);
  expect(tokens.find(`Bearer ${token}`)).toMatchObject({ name: 'e10', account: 7, rights: ['read'], perMinute: 60 });
  for (const other of [`Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, 'Bearer ', `Basic ${token}`])
    expect(tokens.find(other)).toBeUndefined();
  await expect(read(line, 0o644)).rejects.toThrow(/is open to every user of this machine \(mode 0644\)/);
});

it.each([
  [line.replace('7', '8'), /0\.account must be one that is served: 7 \(got 8\)/],
  [line.replace('[read]', '[send]'), /0\.rights\.0 must be of enqueue, read, cancel/],
  [line.replace(/sha256: '.*'/, `sha256: '${token}'`), /0\.sha256 must be 64 hexadecimal digits/],
  [`${line}\n${line}`, /1\.sha256 is there twice/],
  [`- { ${token}`, /is no YAML: \w+ in line/],
])('the file of tokens is refused where it is %j, and the error shows no token', async (text, message) => {
  const refused = read(text);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.not.toThrow(token);
});

it('a token comes from `payouts serve token`', async () => {
  const make = async (...args: string[]) => runInProcess(['serve', 'token', ...args], { GATEWAY_PLATFORM_ID: '7' });
  const { code, stdout, stderr } = await make('shop', '--rights', 'enqueue,cancel', '--per-minute', '9');
  expect(code).toBe(0);
  const [, made = ''] = /^The token of shop, shown once:\n(pq_\S+)\n$/.exec(stderr) ?? [];
  const tokens = await read(`${line}\n${stdout}`);
  expect(tokens.find(`Bearer ${made}`)).toMatchObject({ name: 'shop', rights: ['enqueue', 'cancel'], perMinute: 9 });
  expect(stdout).not.toContain(made);
  const stderrOf = expect.stringMatching(/--rights\.0: must be of enqueue,read,cancel/);
  expect(await make('shop', '--rights', 'send')).toMatchObject({ code: 2, stdout: '', stderr: stderrOf });
});

async function follow(query?: string, headers?: Record<string, string>): Promise<EventStream> {
  const stream = await EventStream.open(rig, query, headers);
  streams.push(stream);
  return stream;
}

/** The payouts of the first events of a stream. */
async function firstOf(count: number, stream: EventStream) {
  await until(`${count} came`, () => stream.events.length === count);
  return stream.payoutIds;
}

it('events begin now, or after an id, and continue where a reader was', async () => {
  await enqueue('before');
  const live = await follow();
  await enqueue('a', 'b', 'c');
  expect(await firstOf(3, live)).toEqual(['a', 'b', 'c']);
  const [first = '', second = ''] = live.events.map(({ id }) => id);
  expect(live.events[0]?.data).toMatchObject({
    eventId: first,
    type: 'state',
    to: 'queued',
    final: false,
    payoutId: 'a',
  });
  expect(await firstOf(2, await follow(`?after=${first}`))).toEqual(['b', 'c']);
  // The header of an EventSource that reconnects counts before its URL.
  expect(await firstOf(1, await follow('?after=0-0', { 'last-event-id': second }))).toEqual(['c']);
  expect(await firstOf(4, await follow('?after=0-0'))).toEqual(['before', 'a', 'b', 'c']);
});

it('events have a place before the first, and all of the own account come, in order', async () => {
  const first = await follow();
  first.close();
  await rig.ask('POST', '/v1/payouts', { body: payout('theirs'), token: rig.tokens.other });
  const ids = Array.from({ length: 1_000 }, (_, index) => `m-${index}`);
  await rig.ask('POST', '/v1/payouts', { body: ids.map((id) => payout(id)) });
  expect(await firstOf(1_000, await follow('', { 'last-event-id': first.lastId }))).toEqual(ids);
});

it('events end where their token was given to another account', async () => {
  const { tokensFile, door, platformId } = rig;
  const stream = await follow();
  const text = await readFile(tokensFile, 'utf8');
  const other = /name: 'other-shop', account: (\d+)/.exec(text)?.[1] ?? '';
  const moved = text.replace(`name: 'only-read', account: ${platformId}`, `name: 'only-read', account: ${other}`);
  expect(moved).not.toBe(text);
  await writeFile(tokensFile, moved);
  door.reload();
  await enqueue('after');
  await until('it ended', () => stream.isEnded, 30_000);
  expect(stream.payoutIds).toEqual([]);
});

it('events end where their token was exchanged for another of the same name', async () => {
  const { tokensFile, door, platformId } = rig;
  const stream = await follow();
  const { token, line } = createToken({ name: 'only-read', account: platformId, rights: ['read'] });
  const lines = (await readFile(tokensFile, 'utf8')).split('\n');
  await writeFile(tokensFile, lines.map((each) => (each.includes("'only-read'") ? line : each)).join('\n'));
  door.reload();
  await enqueue('after');
  await until('it ended', () => stream.isEnded, 30_000);
  expect(stream.payoutIds).toEqual([]);
  // Who has the new one goes on where the other ended.
  const next = await EventStream.open({ ...rig, tokens: { ...rig.tokens, read: token } }, `?after=${stream.lastId}`);
  streams.push(next);
  expect(await firstOf(1, next)).toEqual(['after']);
});

it('streams of one name are limited for each account', async () => {
  const { tokensFile, door, tokens } = rig;
  const text = await readFile(tokensFile, 'utf8');
  await writeFile(tokensFile, text.replace("'other-shop'", "'only-read'"));
  door.reload();
  for (let count = 0; count < 20; count += 1) await follow();
  const refused = await rig.ask('GET', '/v1/events', { token: tokens.read });
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  streams.push(await EventStream.open({ ...rig, tokens: { ...tokens, read: tokens.other } }));
});

it('events end with their token, and at once when the door stops', async () => {
  const { tokens, tokensFile, door } = rig;
  const stream = await follow();
  const other = await EventStream.open({ ...rig, tokens: { ...tokens, read: tokens.all } });
  const lines = (await readFile(tokensFile, 'utf8')).split('\n');
  await writeFile(tokensFile, lines.filter((each) => !each.includes('only-read')).join('\n'));
  door.reload();
  await until('it ended', () => stream.isEnded, 30_000);
  expect(other.isEnded).toBe(false);
  const startedAt = performance.now();
  await door.close();
  await until('it ended', () => other.isEnded);
  expect(performance.now() - startedAt).toBeLessThan(8_000);
});

it('a name follows at most 20 times', async () => {
  for (let count = 0; count < 20; count += 1) await follow();
  const refused = await rig.ask('GET', '/v1/events', { token: rig.tokens.read });
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  streams.shift()?.close();
  await until('one is free', async () => (await rig.metrics()).includes('payouts_http_streams 19'));
  await follow();
});
