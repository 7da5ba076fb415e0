import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { PayoutOperator } from '../src/control/payout-operator.js';
import { PayoutProducer } from '../src/control/payout-producer.js';
import { createPayoutWorker } from '../src/control/payout-worker.js';
import { createDashboard } from '../src/dashboard/create-dashboard.js';
import { startSandbox } from '../src/sandbox/start-sandbox.js';
import { createWorkerMetrics } from '../src/worker/monitoring/worker-metrics.js';
import { payoutInput } from './producer/support/payout-input.js';
import { newPlatformId, testRedisUrl } from './support/account.js';

it("an application's ioredis, pino and registry go into producer, worker, operator and dashboard", async () => {
  const account = { platformId: newPlatformId(), secretKey: 'k-own-parts' };
  const { platformId } = account;
  const lines: { level: number; platformId?: number; msg: string }[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as (typeof lines)[number]);
  const logger = pino({ level: 'debug' }, { write });
  const registry = new Registry();
  const metrics = createWorkerMetrics({ version: '1.2.3', registry });
  const connection = new Redis(testRedisUrl(), { commandTimeout: 5_000 });
  const journalDir = await mkdtemp(join(tmpdir(), 'payouts-own-parts-'));
  {
    await using sandbox = await startSandbox({ accounts: [account], settleAfterMs: 50 });
    await using producer = new PayoutProducer({ connection, platformId, logger });
    const operator = new PayoutOperator({ connection, platformId, logger });
    const dashboard = createDashboard({ connection, platformId, logger, registry });
    const server = createServer(dashboard.handler).listen(0, '127.0.0.1');
    await using worker = await createPayoutWorker({
      ...{ connection, journalDir, logger, observe: metrics.observe },
      accounts: [{ ...account, baseUrl: sandbox.url, leaseMs: 500, quarantineMs: 0, pollMinMs: 50 }],
    });
    await producer.enqueue(payoutInput());
    expect(await producer.waitFor('p-1', { timeoutMs: 60_000 })).toMatchObject({ state: 'completed' });
    expect(await operator.pause({ by: 'ann', reason: 'a test' })).toMatchObject({ paused: true });
    const page = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/payouts/p-1`);
    expect(await page.text()).toContain('12.5');
    expect(await metrics.collect(worker.accounts)).toMatch(/payouts_build_info\{[^}]*1\.2\.3/);
    expect(await registry.metrics()).toContain('payouts_dashboard_login_failures_total');
    server.closeAllConnections();
    server.close();
    await dashboard.close();
    await operator.close();
  }
  // Secrets are no part of a line, whoever writes it.
  expect(JSON.stringify(lines)).not.toContain(account.secretKey);
  expect(lines).toContainEqual(expect.objectContaining({ level: 30, platformId, msg: 'withdraw sent' }));
  expect(connection.status).toBe('ready');
  expect(await connection.ping()).toBe('PONG');
  connection.disconnect();
  await rm(journalDir, { recursive: true });
}, 90_000);
