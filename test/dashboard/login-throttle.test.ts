import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { requireLogin } from '../../src/dashboard/basic-auth.js';
import { createLoginMetrics, type LoginMetrics } from '../../src/dashboard/login-metrics.js';
import { LoginThrottle, networkOf } from '../../src/dashboard/login-throttle.js';
import { silentLogger } from '../../src/logger.js';
import { basicAuth, openDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

const PASSWORD = 'correct horse battery';
const RIGHT = basicAuth('payouts', PASSWORD);
const FREE = 9;

let now: number;
let warnings: object[];
let metrics: LoginMetrics;
let server: Server;
let url: string;

beforeEach(async () => {
  now = 1_000_000;
  warnings = [];
  metrics = createLoginMetrics();
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const login = requireLogin({ user: 'payouts', password: PASSWORD }, { clock: { now: () => now }, logger, metrics });
  // The tests are clients with addresses of their own.
  const app = express().set('trust proxy', 'loopback');
  app.use('/pay', login, (_, response) => void response.send('inside'));
  server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay`;
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

interface Client {
  readonly address?: string;
  readonly cookie?: string;
}

async function ask(
  authorization: string | undefined,
  { address = '192.0.2.1', cookie }: Client = {},
): Promise<Response> {
  return fetch(url, {
    headers: {
      'x-forwarded-for': address,
      ...(authorization === undefined ? {} : { authorization }),
      ...(cookie === undefined ? {} : { cookie }),
    },
  });
}

async function guess(times: number, client?: Client): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < times; index += 1) {
    statuses.push((await ask(basicAuth('payouts', `wrong ${index}`), client)).status);
  }
  return statuses;
}

async function countedFailures(): Promise<number | undefined> {
  return (await metrics.failures.get()).values[0]?.value;
}

function cookieOf(response: Response): string {
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

describe('a client that guesses the password', () => {
  it('has to wait after ten wrong ones, also with the right one, and a warning names it', async () => {
    expect(new Set(await guess(FREE + 1))).toEqual(new Set([401]));
    const refused = await ask(RIGHT);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await refused.text()).toBe('Too many wrong passwords from here: try again in 1 s.\n');
    expect(warnings).toEqual([{ client: '192.0.2.1', failures: 10, waitMs: 1_000 }]);
    now += 1_000;
    expect((await ask(RIGHT)).status).toBe(200);
  });

  it('waits twice as long after each further one, up to a minute', async () => {
    await guess(FREE + 1);
    const waits: number[] = [];
    for (let index = 0; index < 8; index += 1) {
      const wait = Number((await ask(RIGHT)).headers.get('retry-after'));
      waits.push(wait);
      now += wait * 1_000;
      expect(await guess(1)).toEqual([401]);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('gets no more tries by asking for many at once', async () => {
    const guesses = Array.from({ length: 200 }, async (_, index) => ask(basicAuth('payouts', `wrong ${index}`)));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(FREE + 1);
    expect(await countedFailures()).toBe(FREE + 1);
    expect((await metrics.refused.get()).values[0]?.value).toBe(200 - FREE - 1);
  });

  it('starts again after a quarter of an hour without a wrong one', async () => {
    await guess(FREE);
    now += 15 * 60_000;
    await guess(FREE);
    expect((await ask(RIGHT)).status).toBe(200);
  });

  it('does not count a client that has not signed in yet', async () => {
    for (let index = 0; index < 30; index += 1) expect((await ask(undefined)).status).toBe(401);
    expect((await ask(RIGHT)).status).toBe(200);
    expect(await countedFailures()).toBe(0);
  });

  it('locks out nobody at another address', async () => {
    await guess(FREE + 1);
    expect((await ask(RIGHT, { address: '192.0.2.2' })).status).toBe(200);
  });

  it('is the whole /64 network of an IPv6 address', async () => {
    for (let index = 0; index <= FREE; index += 1) await guess(1, { address: `2001:db8:1:2::${index}` });
    expect((await ask(RIGHT, { address: '2001:db8:1:2:ffff::1' })).status).toBe(429);
    expect((await ask(RIGHT, { address: '2001:db8:1:3::1' })).status).toBe(200);
  });

  it('locks out no browser behind the same address that signed in before', async () => {
    const cookie = cookieOf(await ask(RIGHT));
    await guess(FREE + 1);
    expect((await ask(RIGHT)).status).toBe(429);
    const known = await ask(RIGHT, { cookie });
    expect(known.status).toBe(200);
    expect(known.headers.getSetCookie()).toEqual([]);
  });

  it('gains nothing by a cookie: it has its own tries, and no made-up one counts', async () => {
    const cookie = cookieOf(await ask(RIGHT));
    expect((await ask(undefined, { cookie })).status).toBe(401);
    expect(await guess(FREE + 2, { cookie })).toEqual([...new Array<number>(FREE + 1).fill(401), 429]);
    await guess(FREE + 1);
    for (const end of ['0', '00', '']) {
      const madeUp = { cookie: `${cookie.slice(0, -1)}${end}` };
      if (madeUp.cookie !== cookie) expect((await ask(RIGHT, madeUp)).status).toBe(429);
    }
  });
});

describe('the cookie of a browser that signed in', () => {
  it('is for this path, and out of reach of scripts and other sites', async () => {
    const [cookie = ''] = (await ask(RIGHT)).headers.getSetCookie();
    expect(cookie).toMatch(/^payouts_browser=[0-9a-f]{32}\.[0-9a-f]{64}; Max-Age=2592000; Path=\/pay; /);
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.toContain('Secure');
    const headers = { authorization: RIGHT, 'x-forwarded-proto': 'https' };
    expect((await fetch(url, { headers })).headers.getSetCookie()[0]).toContain('; Secure');
  });
});

describe('LoginThrottle', () => {
  it('remembers ten thousand clients, the newest ones', () => {
    const throttle = new LoginThrottle(() => now);
    for (let index = 0; index < 10; index += 1) throttle.countFailure('attacker');
    for (let index = 0; index < 9_999; index += 1) throttle.countFailure(`client ${index}`);
    expect(throttle.waitMs('attacker')).toBe(1_000);
    throttle.countFailure('one more');
    expect(throttle.waitMs('attacker')).toBe(0);
  });
});

describe('networkOf', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::1', '0:0:0:0::/64'],
    ['2001:0db8::', '2001:db8:0:0::/64'],
    ['2001:db8:0:42:1:2:3:4', '2001:db8:0:42::/64'],
    ['2001:db8::42:1:2:3:4', '2001:db8:0:42::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('the dashboard', () => {
  let account: SampleAccount;
  beforeAll(async () => {
    account = await openSampleAccount();
  });
  afterAll(async () => {
    await account.close();
  });

  it('counts wrong passwords in a metric, which needs the password itself', async () => {
    const dashboard = await openDashboard(account, { password: PASSWORD });
    const wrong = { headers: { authorization: basicAuth('payouts', 'wrong') } };
    expect((await dashboard.ask('/metrics', wrong)).status).toBe(401);
    expect((await dashboard.ask('/metrics', { headers: {} })).status).toBe(401);
    expect(await dashboard.read('/metrics')).toMatch(/^payouts_dashboard_login_failures_total 1$/m);
    await dashboard.close();
  });

  it('takes the client from X-Forwarded-For of trusted proxies only', async () => {
    const guessAs = async (trustedProxies?: readonly string[]): Promise<number> => {
      const dashboard = await openDashboard(account, { password: PASSWORD, trustedProxies });
      for (let index = 0; index <= FREE + 1; index += 1) {
        const authorization = basicAuth('payouts', 'wrong');
        await dashboard.ask('/payouts', { headers: { authorization, 'x-forwarded-for': '192.0.2.1' } });
      }
      const other = { headers: { authorization: RIGHT, 'x-forwarded-for': '192.0.2.2' } };
      const { status } = await dashboard.ask('/payouts', other);
      await dashboard.close();
      return status;
    };
    expect(await guessAs()).toBe(429);
    expect(await guessAs(['loopback'])).toBe(200);
    expect(await guessAs(['10.0.0.0/8'])).toBe(429);
  });
});
