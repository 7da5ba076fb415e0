import { request, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import express from 'express';
import { Registry } from 'prom-client';
import { silentLogger } from '../../src/base/logger.js';
import { createDashboard, type Dashboard } from '../../src/dashboard/create-dashboard.js';
import { createLoginMetrics, FailedAttempts, networkOf, requireLogin } from '../../src/dashboard/login.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { basicAuth, openDashboard, serve, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** Who is let in, at which address, and under which path. */

const PASSWORD = 'pass:word ünïcode';
const RIGHT = basicAuth('payouts', PASSWORD);
const WRONG = basicAuth('payouts', 'wrong');

let account: SampleAccount;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  account = await openSampleAccount();
});

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

afterAll(async () => account.close());

type Options = Parameters<typeof openDashboard>[1];

async function start(options: Options = {}): Promise<RunningDashboard> {
  const dashboard = await openDashboard(account, options);
  ends.push(async () => dashboard.close());
  return dashboard;
}

async function askAs(host: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.once('error', reject).end();
  });
}

it('a password: responds 401 on every path without it', async () => {
  const dashboard = await start({ password: PASSWORD });
  const paths = [
    ...['/', '/overview', '/payouts.csv?state=queued', '/style.css', '/metrics', '/none', '/%ff'],
    ...['/board', '/board/api/queues'],
  ].map((path) => ['GET', path] as const);
  for (const [method, path] of [...paths, ['POST', '/approvals'], ['PUT', '/board/api/queues/pause']] as const) {
    const response = await dashboard.ask(path, { method, headers: {} });
    expect({ path, status: response.status }).toEqual({ path, status: 401 });
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    expect(await response.text()).toMatch(/^Sign in .*\n$/);
  }
});

it('a password: accepts the right user and password, and nothing else', async () => {
  const dashboard = await start({ user: 'ann', password: PASSWORD });
  const statusOf = async (authorization: string) =>
    (await dashboard.ask('/overview', { headers: { authorization } })).status;
  for (const authorization of [
    ...[basicAuth('ann', 'pass'), basicAuth('ann', `${PASSWORD}x`), basicAuth('Ann', PASSWORD)],
    ...[`Bearer ${PASSWORD}`, 'Basic', `Basic ${Buffer.from('ann').toString('base64')}`],
  ])
    expect([authorization, await statusOf(authorization)]).toEqual([authorization, 401]);
  expect(await statusOf(basicAuth('ann', PASSWORD))).toBe(200);
});

it('a password: serves any host name, counts wrong passwords, and keeps pages private', async () => {
  const dashboard = await start({ password: PASSWORD, host: '0.0.0.0' });
  expect(await askAs('payouts.example', `${dashboard.url}payouts`)).toBe(401);
  await dashboard.ask('/metrics', { headers: { authorization: WRONG } });
  expect(await dashboard.read('/metrics')).toMatch(/^payouts_dashboard_login_failures_total 1$/m);
  const { headers } = await dashboard.ask('/overview');
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-security-policy':
      "default-src 'none';script-src 'self';connect-src 'self';style-src 'self';img-src 'self' data:;form-action 'self';base-uri 'none';frame-ancestors 'none'",
    ...{ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' },
    'referrer-policy': 'no-referrer',
  });
  expect(headers.get('x-powered-by')).toBeNull();
});

it.each([
  [undefined, 429],
  [['loopback'], 200],
  [['10.0.0.0/8'], 429],
])('a password: takes the client from X-Forwarded-For of trusted proxies only: %j', async (trustedProxies, status) => {
  const dashboard = await start({ password: PASSWORD, trustedProxies });
  const ask = async (authorization: string, client: string): Promise<Response> =>
    dashboard.ask('/style.css', { headers: { authorization, 'x-forwarded-for': client } });
  for (let index = 0; index <= 11; index += 1) await ask(WRONG, '192.0.2.1');
  expect((await ask(RIGHT, '192.0.2.2')).status).toBe(status);
});

it('without a password, serves only host names of this machine', async () => {
  const { url } = await start();
  const hosts = ['localhost:3000', '[::1]:3000', 'evil.example', '127.0.0.1.evil.example'];
  const statuses = await Promise.all(hosts.map(async (host) => askAs(host, `${url}payouts`)));
  expect(statuses).toEqual([200, 200, 421, 421]);
});

it.each<[Options, string]>([
  [{ host: '127.0.0.1.example' }, 'password: is required to listen on 127.0.0.1.example'],
  [{ user: 'ann' }, 'password: is missing, but a user is given'],
  [{ password: '' }, 'password: must not be empty'],
  [{ user: 'a:b', password: 'x' }, 'user: must not contain a colon'],
  [{ platformId: [7, 7] }, 'at least one account, and each once'],
  [{ host: '0.0.0.0', password: 'elevenchars' }, 'password: must have at least 12 characters to listen on 0.0.0.0'],
])('startDashboard refuses %j, and shows no password', async (options, message) => {
  const refused = start(options);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.not.toThrow('elevenchars');
});

it('startDashboard takes a short password on this machine', async () => {
  await start({ host: '0.0.0.0', password: 'twelve chars' });
  const { url } = await start({ host: '127.0.0.1', password: 'short' });
  await expect(start({ port: Number(new URL(url).port) })).rejects.toThrow(/port \d+ on 127.0.0.1 is in use/);
});

const FREE = 10;
/** Short, for the test that waits for its end. */
const SHORT_S = 4;
let warnings: object[];
let metrics: ReturnType<typeof createLoginMetrics>;
let url: string;

async function guard(duration = 900) {
  warnings = [];
  metrics = createLoginMetrics();
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const limit = { points: FREE, duration };
  const login = requireLogin({ user: 'payouts', password: PASSWORD }, metrics.failures, logger, limit);
  // The tests are clients with addresses of their own.
  const app = express().set('trust proxy', 'loopback');
  app.use('/pay', login, (_, response) => void response.send('inside'));
  const server = await serve(app);
  ends.push(async () => server.close());
  url = `${server.url}/pay`;
}

async function ask(authorization: string | undefined, address = '192.0.2.1'): Promise<Response> {
  const headers = { 'x-forwarded-for': address, ...(authorization !== undefined && { authorization }) };
  return fetch(url, { headers });
}

it('a guesser waits after ten wrong passwords, and a warning names it', async () => {
  await guard(SHORT_S);
  const guesses: number[] = [];
  while (guesses.length <= FREE) guesses.push((await ask(WRONG)).status);
  expect(guesses).toEqual([...Array<number>(FREE).fill(401), 429]);
  expect((await ask(RIGHT, '192.0.2.2')).status).toBe(200);
  const refused = await ask(RIGHT);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^[1-4]$/)]);
  expect(await refused.text()).toMatch(/try again in [1-4] s\.\n$/);
  expect(warnings).toEqual([{ client: '192.0.2.1', failures: FREE, waitMs: expect.any(Number) }]);
  await new Promise((resolve) => setTimeout(resolve, SHORT_S * 1_000 + 100));
  expect((await ask(RIGHT)).status).toBe(200);
});

it('a guesser gets no more tries by asking for many at once', async () => {
  await guard();
  const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await ask(WRONG)).status));
  expect(statuses.filter((status) => status === 401)).toHaveLength(FREE);
  expect((await metrics.failures.get()).values[0]?.value).toBe(100);
});

it('no guesser is who has not signed in yet, or knows the password', async () => {
  await guard();
  for (let index = 0; index < FREE + 2; index += 1)
    expect([(await ask(undefined)).status, (await ask(RIGHT)).status]).toEqual([401, 200]);
  expect((await metrics.failures.get()).values[0]?.value).toBe(0);
});

it('a guesser is one of the ten thousand newest that are remembered', async () => {
  const attempts = new FailedAttempts({ points: 1, duration: 60 });
  for (const client of ['attacker', ...Array(9_999).keys()]) await attempts.count(String(client));
  expect(await attempts.waitMs('attacker')).toBeGreaterThan(0);
  await attempts.count('one more');
  expect(await attempts.waitMs('attacker')).toBe(0);
});

it.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8::42:1:2:3:4', '2001:db8:0:42::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('a guesser at %s is the whole network %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

function open(options: { readonly publicPath?: string; readonly registry?: Registry } = {}): Dashboard {
  const { platformId, redis } = account;
  const dashboard = createDashboard({ platformId, connection: redis, allowUnprotected: true, ...options });
  ends.push(async () => dashboard.close());
  return dashboard;
}

/** As a proxy, or a framework without Express's `baseUrl`. */
function stripping(prefix: string, handler: Dashboard['handler']) {
  return (asked: IncomingMessage, response: ServerResponse) => {
    asked.url = (asked.url ?? '').replace(prefix, '') || '/';
    handler(asked, response);
  };
}

it.each<[string, path: string, (path: string) => RequestListener]>([
  ['under a path of a server of Node', '/admin/pay', (path) => open({ publicPath: path }).handler],
  ['behind a proxy that strips the path', '/admin', (path) => stripping(path, open({ publicPath: path }).handler)],
  ['as a router in Express', '/admin', (path) => express().use(path, open().router)],
])('a mounted dashboard works %s: each link of its page leads on', async (_, path, listen) => {
  const server = await serve(listen(path));
  ends.unshift(async () => server.close());
  const first = await fetch(`${server.url}${path}/`, { redirect: 'manual' });
  expect([first.status, first.headers.get('location')]).toEqual([302, `${path}/overview`]);
  const page = await (await fetch(`${server.url}${path}/overview?x=1`)).text();
  const links = new Set([...page.matchAll(/(?:href|src)="(?!data:)([^"#?]+)/g)].map(([, link = '']) => link));
  expect(links.size).toBeGreaterThan(5);
  for (const link of links) {
    expect(link).toMatch(new RegExp(`^${path}/`));
    expect([link, (await fetch(server.url + link)).status]).toEqual([link, 200]);
  }
  expect(await (await fetch(`${server.url}${path}/board`)).text()).toContain(`<base href="${path}/board/"`);
});

it.each([
  ['staging', 'warn'],
  ['Production EU', 'bad'],
])('every page of the environment %s says so, in a band and at its foot', async (environment, tone) => {
  const second = account.platformId + 1;
  const one = await start({ environment });
  const many = await start({ environment, platformId: [account.platformId, second] });
  const paths = ['/overview', '/payouts?state=queued', '/payouts/none', '/none', '/policy', '/diagnostics'];
  const pages = paths.map(async (path) => one.read(path));
  const others = ['/accounts', `/accounts/${second}/held`, '/none'].map(async (path) => many.read(path));
  for (const page of await Promise.all([...pages, ...others])) {
    expect(page).toMatch(new RegExp(`<p class="environment ${tone}"[^>]*><bdi>${environment}</bdi>`));
    expect(page).toContain(`environment <bdi>${environment}</bdi>`);
  }
});

it('a page has no band without an environment, and none that is not words', async () => {
  expect(await (await start()).read('/overview')).not.toContain('class="environment');
  for (const environment of ['', ' staging', 'a\nb', 'x'.repeat(41)])
    await expect(start({ environment })).rejects.toThrow(/^environment: must /);
});

it('a mounted dashboard needs a password, unless the application says that it controls access', async () => {
  const { platformId, redis } = account;
  for (const allowUnprotected of [undefined, false]) {
    const make = (): Dashboard => createDashboard({ platformId, connection: redis, allowUnprotected });
    expect(make).toThrow(/^password: is missing: everyone .* allowUnprotected: true/);
  }
  const dashboard = createDashboard({ platformId, connection: redis, password: 'a password' });
  ends.push(async () => dashboard.close());
  const server = await serve(dashboard.handler);
  ends.unshift(async () => server.close());
  expect((await fetch(`${server.url}/overview`)).status).toBe(401);
});

it("a mounted dashboard leaves the application's connection open, and shares a registry", async () => {
  const registry = new Registry();
  const dashboard = open({ registry });
  await dashboard.close();
  await dashboard.close();
  expect(await account.redis.ping()).toBe('PONG');
  createWorkerMetrics({ version: '1', registry });
  expect(await registry.metrics()).toMatch(/payouts_dashboard_login_failures_total[^]*payouts_build_info/);
});
