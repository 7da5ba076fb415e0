import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { systemClock } from '../../../src/base/clock.js';
import { createGatewayClient, type GatewayClient } from '../../../src/gateway/gateway-client.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { observeGateway } from '../../../src/worker/monitoring/observe-gateway.js';
import { createWorkerMetrics, type WorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { readMetric } from '../support/watched-worker.js';

/** Requests to a real gateway over HTTP, as the metrics of a worker count them. */

const PLATFORM_ID = 7;
const SECRET_KEY = 'k-observed-0123456789';
const WALLET = 'wallet-observedxxxxxxxxxxxxxxxxxxxxxxxxx';

let sandbox: Sandbox;
let gateway: GatewayClient;
let metrics: WorkerMetrics;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts: [{ platformId: PLATFORM_ID, secretKey: SECRET_KEY }] });
  metrics = createWorkerMetrics({ version: '1' });
  const client = createGatewayClient({ baseUrl: sandbox.url, platformId: PLATFORM_ID, secretKey: SECRET_KEY });
  gateway = observeGateway(client, metrics.observe(PLATFORM_ID), systemClock);
});

afterEach(async () => {
  gateway.close();
  await sandbox.close();
});

async function metric(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
  return readMetric(await metrics.registry.metrics(), name, { platform_id: String(PLATFORM_ID), ...labels });
}

const requests = async (endpoint: string, outcome: string): Promise<number | undefined> =>
  metric('payouts_gateway_requests_total', { endpoint, outcome });

it('counts each endpoint with its outcome', async () => {
  await gateway.balance();
  await gateway.probe(new AbortController().signal);
  sandbox.addFaults([{ kind: 'json-500', endpoint: 'currencies', times: 1 }]);
  await expect(gateway.currencies()).rejects.toThrow();
  await expect(gateway.getStatus('0xunknown')).rejects.toThrow();
  const connection = await gateway.openConnection(new AbortController().signal);
  await connection.withdraw({ paymentId: 1, amount: '1', addressTo: WALLET }, { mayWrite: () => true });
  expect(await requests('balance', 'answered')).toBe(2);
  expect(await requests('currencies', 'unavailable')).toBe(1);
  expect(await requests('transactionstatus', 'rejected')).toBe(1);
  expect(await requests('withdraw', 'answered')).toBe(1);
  expect(await metric('payouts_gateway_request_seconds_count', { endpoint: 'withdraw' })).toBe(1);
});

it('counts a withdrawal that gets no connection, and none that is stopped', async () => {
  await sandbox.close();
  await expect(gateway.openConnection(new AbortController().signal)).rejects.toThrow();
  expect(await requests('withdraw', 'unavailable')).toBe(1);
  await expect(gateway.openConnection(AbortSignal.abort())).rejects.toThrow();
  expect(await requests('withdraw', 'unavailable')).toBe(1);
});

it('shows for how long the oldest request is open, and nothing without one', async () => {
  sandbox.pause();
  const waits = gateway.balance().catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await metric('payouts_gateway_oldest_open_seconds', { endpoint: 'balance' })).toBeGreaterThan(0.09);
  await sandbox.close();
  await waits;
  expect(await metric('payouts_gateway_oldest_open_seconds', { endpoint: 'balance' })).toBeUndefined();
});

it('has the metrics of the process, but not in a registry of the application', async () => {
  expect(await metrics.registry.metrics()).toMatch(/^process_cpu_seconds_total \d/m);
  const registry = createWorkerMetrics({ version: '1', registry: new Registry() });
  expect(await registry.registry.metrics()).not.toContain('process_cpu');
});
