import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createToken, Tokens } from '../../src/http/tokens.js';
import { runInProcess } from '../cli/support/in-process.js';
import { until } from '../support/until.js';
import { openDoor, payout, type DoorRig } from './support/door-rig.js';

describe('a request', () => {
  let rig: DoorRig;
  beforeAll(async () => {
    rig = await openDoor();
    await rig.ask('POST', '/v1/payouts', { body: payout('mine') });
    await rig.ask('POST', '/v1/payouts', { body: payout('theirs'), token: rig.tokens.other });
  });
  afterAll(async () => {
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

  it('without a token that exists is refused on every route', async () => {
    for (const token of [undefined, `pq_${'x'.repeat(43)}`, 'x', 'a'.repeat(64)]) {
      for (const [method, path] of ROUTES) {
        const { status, body, headers } = await rig.ask(method, path, { token });
        expect({ path, status, code: body.code }).toEqual({ path, status: 401, code: 'UNAUTHORIZED' });
        expect(headers.get('www-authenticate')).toBe('Bearer realm="payouts"');
      }
    }
    expect(JSON.stringify(rig.logged)).not.toMatch(/pq_|x{43}/);
  });

  it('needs the right of its route, whatever else the token may', async () => {
    for (const [method, path, right] of ROUTES) {
      for (const has of ['enqueue', 'read', 'cancel'] as const) {
        if (has === right) continue;
        const { status, body } = await rig.ask(method, path, { token: rig.tokens[has] });
        expect({ path, has, status, code: body.code }).toEqual({ path, has, status: 403, code: 'FORBIDDEN' });
      }
    }
    for (const [method, path, right] of ROUTES.filter(([, route]) => route !== '/v1/events')) {
      const body = method === 'GET' ? {} : { body: path.endsWith('cancel') ? {} : payout('own') };
      expect((await rig.ask(method, path, { token: rig.tokens[right], ...body })).status).toBeLessThan(300);
    }
  });

  it('sees its own account only', async () => {
    const problem = { type: 'about:blank', title: 'Not Found', status: 404, code: 'NOT_FOUND' };
    for (const id of ['theirs', 'nobodys']) {
      const detail = `Payout ${id} not found`;
      expect((await rig.ask('GET', `/v1/payouts/${id}`)).body).toEqual({ ...problem, detail });
      expect((await rig.ask('POST', `/v1/payouts/${id}/cancel`)).body).toEqual({ ...problem, detail });
    }
    const { body } = await rig.ask('GET', '/v1/payouts?state=queued');
    expect(JSON.stringify(body)).not.toContain('theirs');
    // The same id is another payout there.
    expect((await rig.ask('POST', '/v1/payouts', { body: payout('theirs', { amount: '1' }) })).status).toBe(201);
    const { body: other } = await rig.ask('GET', '/v1/payouts/theirs', { token: rig.tokens.other });
    expect(other).toMatchObject({ amount: '12.5' });
  });
});

it('counts requests and payouts against the limit a minute of a name', async () => {
  const rig = await openDoor({}, 5);
  const many = [payout('a'), payout('b'), payout('c')];
  expect((await rig.ask('POST', '/v1/payouts', { body: many })).status).toBe(201);
  for (let index = 0; index < 2; index += 1) expect((await rig.ask('GET', '/v1/stats')).status).toBe(200);
  const refused = await rig.ask('POST', '/v1/payouts', { body: payout('d') });
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  // Another name has a limit of its own, and what was refused was not enqueued.
  expect((await rig.ask('GET', '/v1/payouts/d', { token: rig.tokens.read })).status).toBe(404);
  await rig.close();
});

describe('the file of tokens', () => {
  let rig: DoorRig;
  beforeEach(async () => {
    rig = await openDoor();
  });
  afterEach(async () => {
    await rig.close();
  });

  const status = async (token: string): Promise<number> => (await rig.ask('GET', '/v1/stats', { token })).status;
  const metrics = async (): Promise<string> => (await fetch(`${rig.door.healthUrl}/metrics`)).text();

  it('is read when it changes; an unusable one leaves those before', async () => {
    const { token, line } = createToken({ name: 'shop', account: rig.platformId, rights: ['read'] });
    expect(await status(token)).toBe(401);
    await writeFile(rig.tokensFile, `${line}\n`);
    await until('the new token counts', async () => (await status(token)) === 200);
    expect(await status(rig.tokens.all)).toBe(401);
    for (const text of ['', '- {', `- { name: x, account: 1, rights: [read], sha256: 'pq_secret' }`]) {
      await writeFile(rig.tokensFile, text);
      rig.door.reload();
      expect(await status(token)).toBe(200);
      expect(rig.logged.at(-1)?.message).toBe('the tokens could not be read again: those before still count');
      expect(JSON.stringify(rig.logged)).not.toContain('pq_secret');
      expect(await metrics()).toContain('payouts_http_tokens_stale 1');
      const ready = (await (await fetch(`${rig.door.healthUrl}/readyz`)).json()) as object;
      expect(ready).toEqual({ ready: true, redis: 'up', tokens: 'stale' });
    }
    await writeFile(rig.tokensFile, '[]');
    rig.door.reload();
    expect(await status(token)).toBe(401);
    expect(await metrics()).toContain('payouts_http_tokens_stale 0');
  });
});

describe('what is in the file', () => {
  let dir: string;
  let file: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'payouts-tokens-'));
    file = join(dir, 'tokens.yaml');
  });
  afterEach(async () => {
    await rm(dir, { recursive: true });
  });

  const read = async (text: string, mode = 0o600): Promise<Tokens> => {
    await writeFile(file, text);
    await chmod(file, mode);
    return new Tokens(file, [7], false);
  };
  const { token, line } = createToken({ name: 'e10', account: 7, rights: ['read'], perMinute: 60 });

  it('is the hash of a token of 256 bits, and who it is', async () => {
    expect(token).toMatch(/^pq_[\w-]{43}$/);
    expect(line).not.toContain(token.slice(3));
    const tokens = await read(`# the shop\n${line}\n`);
    expect(tokens.find(`Bearer ${token}`)).toMatchObject({ name: 'e10', account: 7, rights: ['read'], perMinute: 60 });
    for (const other of [`Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, 'Bearer ', `Basic ${token}`])
      expect(tokens.find(other)).toBeUndefined();
  });

  it.each([
    [line.replace('7', '8'), /0\.account must be one that is served: 7 \(got 8\)/],
    [line.replace('[read]', '[send]'), /0\.rights\.0 must be of enqueue, read, cancel/],
    [line.replace('[read]', '[]'), /0\.rights must not be empty/],
    [line.replace(/sha256: '.*'/, `sha256: '${token}'`), /0\.sha256 must be 64 hexadecimal digits/],
    [`${line}\n${line}`, /1\.sha256 is there twice/],
    [line.replace('perMinute', 'perMinutes'), /not a known field, did you mean perMinute/],
    ['tokens: []', /must be a list of tokens/],
    [`- { ${token}`, /is no YAML: \w+ in line/],
  ])('is refused where it is %j, and the error shows no token', async (text, message) => {
    const refused = read(text);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.not.toThrow(token);
  });

  it('is refused if others can read or write it', async () => {
    await expect(read(line, 0o644)).rejects.toThrow(/is open to every user of this machine \(mode 0644\)/);
    await expect(read(line, 0o620)).rejects.toThrow(/is not trusted: others than its owner can write/);
    expect(await read(line, 0o640)).toBeInstanceOf(Tokens);
  });

  it('comes from `payouts serve token`', async () => {
    const make = async (...args: string[]) => runInProcess(['serve', 'token', ...args], { GATEWAY_PLATFORM_ID: '7' });
    const { code, stdout, stderr } = await make('shop', '--rights', 'enqueue,cancel', '--per-minute', '9');
    expect(code).toBe(0);
    const [, made = ''] = /^The token of shop, shown once:\n(pq_\S+)\n$/.exec(stderr) ?? [];
    const tokens = await read(`${line}\n${stdout}`);
    expect(tokens.find(`Bearer ${made}`)).toMatchObject({ name: 'shop', rights: ['enqueue', 'cancel'], perMinute: 9 });
    expect(stdout).not.toContain(made);
    for (const [args, message] of [
      [['x'.repeat(33)], /name: must be 1 to 32 of/],
      [['shop', '--rights', 'send'], /--rights\.0: must be of enqueue,read,cancel/],
    ] as const) {
      const refused = await make(...args);
      expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
    }
  });
});
