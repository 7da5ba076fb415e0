import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import { Registry } from 'prom-client';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { createDashboard, type Dashboard } from '../../src/dashboard/create-dashboard.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';

const platformId = newPlatformId();

let connection: RedisClient;
beforeAll(() => {
  connection = connectRedis(testRedisUrl(), 'commands');
});
afterAll(async () => closeRedis(connection));

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function open(options: { readonly publicPath?: string; readonly registry?: Registry } = {}): Dashboard {
  const dashboard = createDashboard({ platformId, connection, ...options });
  ends.push(async () => dashboard.close());
  return dashboard;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.unshift(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** As a proxy, or a framework without Express's `baseUrl`. */
function stripping(prefix: string, handler: Dashboard['handler']) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    request.url = (request.url ?? '').replace(prefix, '') || '/';
    handler(request, response);
  };
}

/** Follows the page's own links: style sheet, script, Bull Board. */
async function expectToWork(url: string, path: string): Promise<void> {
  const start = await fetch(`${url}${path}/`, { redirect: 'manual' });
  expect([start.status, start.headers.get('location')]).toEqual([302, `${path}/payouts`]);
  const page = await (await fetch(`${url}${path}/payouts?x=1`)).text();
  const links = [...page.matchAll(/(?:href|src)="(?!data:)([^"#?]+)/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(5);
  for (const link of new Set(links)) {
    expect(link).toMatch(new RegExp(`^${path}/`));
    expect([link, (await fetch(url + link)).status]).toEqual([link, 200]);
  }
}

describe('the dashboard works', () => {
  it.each<[string, path: string, (path: string) => RequestListener]>([
    ['at the root of a server of Node', '', () => open().handler],
    ['under a path of a server of Node', '/admin/pay', (path) => open({ publicPath: path }).handler],
    ['behind a proxy that strips the path', '/admin', (path) => stripping(path, open({ publicPath: path }).handler)],
    ['as a router in Express', '/admin', (path) => express().use(path, open().router)],
    ['as a handler in Express', '/admin', (path) => express().use(path, open().handler)],
  ])('%s', async (_, path, listen) => {
    await expectToWork(await serve(listen(path)), path);
  });

  it('with a connection of the application, which stays open', async () => {
    await open().close();
    expect(await connection.ping()).toBe('PONG');
  });

  it('with the registry of the application, beside the metrics of a worker', async () => {
    const registry = new Registry();
    open({ registry });
    expect(createWorkerMetrics({ version: '1', registry }).registry).toBe(registry);
    const text = await registry.metrics();
    expect(text).toContain('payouts_dashboard_login_failures_total');
    expect(text).toContain('payouts_build_info');
  });
});
