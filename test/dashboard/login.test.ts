import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createLoginMetrics, FailedAttempts, networkOf, requireLogin } from '../../src/dashboard/login.js';
import { silentLogger } from '../../src/base/logger.js';
import { basicAuth, openDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

const PASSWORD = 'correct horse battery';
const RIGHT = basicAuth('payouts', PASSWORD);
const FREE = 10;
/** Short, for the test that waits for its end. */
const SHORT_S = 4;

let warnings: object[];
let metrics: ReturnType<typeof createLoginMetrics>;
let server: Server;
let url: string;

async function start(duration: number): Promise<void> {
  warnings = [];
  metrics = createLoginMetrics();
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const limit = { points: FREE, duration };
  const login = requireLogin({ user: 'payouts', password: PASSWORD }, metrics.failures, logger, limit);
  // The tests are clients with addresses of their own.
  const app = express().set('trust proxy', 'loopback');
  app.use('/pay', login, (_, response) => void response.send('inside'));
  server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay`;
}

async function stop(): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
}

beforeEach(async () => start(900));

afterEach(stop);

interface Client {
  readonly address?: string;
}

async function ask(authorization: string | undefined, { address = '192.0.2.1' }: Client = {}): Promise<Response> {
  return fetch(url, {
    headers: {
      'x-forwarded-for': address,
      ...(authorization === undefined ? {} : { authorization }),
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

async function windowEnds(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SHORT_S * 1_000 + 100));
}

describe('a client that guesses the password', () => {
  it('has to wait after ten wrong ones, also with the right one, and a warning names it', async () => {
    await stop();
    await start(SHORT_S);
    expect(new Set(await guess(FREE))).toEqual(new Set([401]));
    expect(await guess(1)).toEqual([429]);
    const refused = await ask(RIGHT);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^[1-4]$/)]);
    expect(await refused.text()).toMatch(/^Too many wrong passwords from here: try again in [1-4] s\.\n$/);
    expect(warnings).toEqual([{ client: '192.0.2.1', failures: FREE, waitMs: expect.any(Number) }]);
    await windowEnds();
    expect((await ask(RIGHT)).status).toBe(200);
    expect(await guess(1)).toEqual([401]);
  });

  it('gets no more tries by asking for many at once', async () => {
    const guesses = Array.from({ length: 200 }, async (_, index) => ask(basicAuth('payouts', `wrong ${index}`)));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(FREE);
    expect(await countedFailures()).toBe(200);
  });

  it('does not count a client that has not signed in yet, or that knows the password', async () => {
    for (let index = 0; index < 30; index += 1) {
      expect((await ask(undefined)).status).toBe(401);
      expect((await ask(RIGHT)).status).toBe(200);
    }
    expect(await countedFailures()).toBe(0);
  });

  it('locks out nobody at another address', async () => {
    await guess(FREE + 1);
    expect((await ask(RIGHT, { address: '192.0.2.2' })).status).toBe(200);
  });

  it('is the whole /64 network of an IPv6 address', async () => {
    for (let index = 0; index < FREE; index += 1) await guess(1, { address: `2001:db8:1:2::${index}` });
    expect((await ask(RIGHT, { address: '2001:db8:1:2:ffff::1' })).status).toBe(429);
    expect((await ask(RIGHT, { address: '2001:db8:1:3::1' })).status).toBe(200);
  });
});

describe('FailedAttempts', () => {
  it('remembers ten thousand clients, the newest ones', async () => {
    const attempts = new FailedAttempts({ points: 1, duration: 60 });
    await attempts.count('attacker');
    for (let index = 0; index < 9_999; index += 1) await attempts.count(`client ${index}`);
    expect(await attempts.waitMs('attacker')).toBeGreaterThan(0);
    await attempts.count('one more');
    expect(await attempts.waitMs('attacker')).toBe(0);
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
