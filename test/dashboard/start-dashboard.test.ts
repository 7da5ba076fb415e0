import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { request } from 'node:http';
import { InvalidConfigError } from '../../src/base/errors.js';
import { listBoardRequests } from './support/board-routes.js';
import { basicAuth, openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

const PASSWORD = 'pass:word ünïcode';

let account: SampleAccount;
const open: RunningDashboard[] = [];

beforeAll(async () => {
  account = await openSampleAccount();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map(async (dashboard) => dashboard.close()));
});

afterAll(async () => {
  await account.close();
});

async function start(options: Parameters<typeof openDashboard>[1] = {}): Promise<RunningDashboard> {
  const dashboard = await openDashboard(account, options);
  open.push(dashboard);
  return dashboard;
}

async function askAs(host: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once('error', reject)
      .end();
  });
}

describe('a dashboard with a password', () => {
  it('responds 401 on every path without it', async () => {
    const dashboard = await start({ password: PASSWORD });
    const values = ['x'];
    const routes = listBoardRequests({
      queueName: ['withdraw'],
      jobId: values,
      queueStatus: values,
      schedulerId: values,
    });
    const found = [
      '/payouts?state=',
      '/payouts.csv?state=queued',
      '/batch?name=x',
      '/activity',
      '/held',
      '/policy',
      '/audit',
      '/page.js',
      '/metrics',
    ];
    const own = ['/', '/payouts', '/payouts/x', '/payouts?q=x', '/style.css', '/none', '/board', '/%ff'];
    const assets = ['/board/static/images/logo.svg', '/board/static/favicon.ico', '/board/static/none'];
    const requests = [...routes, ...[...own, ...found, ...assets].map((path) => ({ method: 'GET', path }))];
    requests.push({ method: 'POST', path: '/approvals' });
    for (const { method, path } of requests) {
      const response = await dashboard.ask(path, { method, headers: {} });
      expect({ path, status: response.status }).toEqual({ path, status: 401 });
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
      expect(await response.text()).toBe('Sign in with the user and password of the dashboard.\n');
    }
  });

  it('accepts the right user and password, and nothing else', async () => {
    const dashboard = await start({ password: PASSWORD });
    const wrong = [
      basicAuth('payouts', 'pass'),
      basicAuth('payouts', `${PASSWORD}x`),
      basicAuth('payouts', ''),
      basicAuth('Payouts', PASSWORD),
      basicAuth('', PASSWORD),
      `Bearer ${PASSWORD}`,
      'Basic',
      'Basic ====',
      `Basic ${Buffer.from('payouts').toString('base64')}`,
    ];
    for (const authorization of wrong) {
      expect((await dashboard.ask('/payouts', { headers: { authorization } })).status).toBe(401);
    }
    expect((await dashboard.ask('/payouts')).status).toBe(200);
    expect((await dashboard.ask('/board/static/images/logo.svg')).status).toBe(200);
  });

  it('accepts another user name', async () => {
    const dashboard = await start({ user: 'ann', password: PASSWORD });
    expect((await dashboard.ask('/payouts')).status).toBe(200);
    const authorization = basicAuth('payouts', PASSWORD);
    expect((await dashboard.ask('/payouts', { headers: { authorization } })).status).toBe(401);
  });

  it('serves any host name, and may listen on every address', async () => {
    const dashboard = await start({ password: PASSWORD, host: '0.0.0.0' });
    expect(await askAs('payouts.example', `${dashboard.url}payouts`)).toBe(401);
  });
});

describe('a dashboard without a password', () => {
  it.each(['0.0.0.0', '::', '192.0.2.1', 'payouts.example', '127.0.0.1.example'])(
    'refuses to listen on %s',
    async (host) => {
      await expect(start({ host })).rejects.toThrow(InvalidConfigError);
      await expect(start({ host })).rejects.toThrow(`password: is required to listen on ${host}`);
    },
  );

  it('serves only host names of this machine: no other page can read it through the browser', async () => {
    const { url } = await start();
    expect(await askAs('localhost:3000', `${url}payouts`)).toBe(200);
    expect(await askAs('[::1]:3000', `${url}payouts`)).toBe(200);
    expect(await askAs('evil.example', `${url}payouts`)).toBe(421);
    expect(await askAs('127.0.0.1.evil.example', `${url}payouts`)).toBe(421);
  });
});

describe('a dashboard that other machines can reach', () => {
  it('refuses a password of less than 12 characters, without showing it', async () => {
    const error: unknown = await start({ host: '0.0.0.0', password: 'elevenchars' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidConfigError);
    const { message } = error as Error;
    expect(message).toBe(
      'password: must have at least 12 characters to listen on 0.0.0.0, which other machines can reach',
    );
    // An emoji is one character to the operator who types it.
    await expect(start({ host: '0.0.0.0', password: '😀'.repeat(11) })).rejects.toThrow('at least 12 characters');
    await start({ host: '0.0.0.0', password: 'twelve chars' });
    await start({ host: '127.0.0.1', password: 'short' });
  });
});

describe('startDashboard', () => {
  it('refuses invalid options', async () => {
    await expect(start({ user: 'ann' })).rejects.toThrow('password: is missing, but a user is given');
    await expect(start({ password: '' })).rejects.toThrow('password: must not be empty');
    await expect(start({ user: 'a:b', password: 'x' })).rejects.toThrow('user: must not contain a colon');
    await expect(start({ platformId: 0 })).rejects.toThrow('platformId: must be more than 0');
    await expect(start({ redisUrl: 'http://x' })).rejects.toThrow('redisUrl: must begin with redis://');
  });

  it('reports a port that is in use, and leaves nothing open', async () => {
    const { url } = await start();
    await expect(start({ port: Number(new URL(url).port) })).rejects.toThrow(/port \d+ on 127.0.0.1 is in use/);
  });

  it('sends headers that keep pages private and other hosts out', async () => {
    const { headers } = await (await start({ password: PASSWORD })).ask('/payouts');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none';script-src 'self';connect-src 'self';style-src 'self';img-src 'self' data:;form-action 'self';base-uri 'none';frame-ancestors 'none'",
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-powered-by')).toBeNull();
  });
});
