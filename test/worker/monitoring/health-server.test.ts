import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { NotifyStatus, startNotifyServer } from '../../../src/notifications/notify-server.js';
import { startHealthServer } from '../../../src/worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../../src/worker/monitoring/worker-metrics.js';
import { until } from '../../support/until.js';
import { afterTest } from '../support/close-after-test.js';
import { startOwnRedis } from '../support/own-redis.js';
import { ask, closeAfterTest, readMetric, startWatchedWorker } from '../support/watched-worker.js';

it('/readyz says standing by, sending, paused, and stopped', async () => {
  const { url, platformId, worker, readyz } = await startWatchedWorker();
  const well = { paused: false, pausedReason: null, stopped: [], warnings: [] };
  const expectReady = async (account: object): Promise<void> => {
    const accounts = [{ platformId, ...well, ...account }];
    expect(await readyz()).toEqual([200, { ready: true, redis: 'up', accounts }]);
  };
  await expectReady({ headline: 'Waiting for a sender', role: 'standby' });
  await until('the lease', () => worker.accounts[0]?.status.role === 'sender');
  await expectReady({ headline: 'Idle', role: 'sender', epoch: 1 });
  await worker.accounts[0]?.ledger.pause('an operator', 'to check it');
  const command = `payouts resume --account ${platformId} --reason WHY`;
  const stopped = [{ problem: 'paused: to check it', command }];
  const paused = { paused: true, pausedReason: 'to check it', stopped };
  await expectReady({ headline: 'Paused', role: 'sender', epoch: 1, ...paused });
  await worker.stop();
  expect(await readyz()).toMatchObject([503, { ready: false, accounts: [{ role: 'stopped' }] }]);
  expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
});

it('/readyz says why a journal cannot be read', async () => {
  const prepare = async (dir: string, platformId: number): Promise<unknown> =>
    mkdir(join(dir, `${platformId}.journal`), { recursive: true });
  const { worker, readyz, metric } = await startWatchedWorker({ prepare });
  await until('the role refused', () => worker.accounts[0]?.status.role === 'refused');
  const accounts = [{ role: 'refused', reason: expect.stringMatching(/EISDIR/) }];
  expect(await readyz()).toMatchObject([503, { ready: false, redis: 'up', accounts }]);
  expect([await metric('payouts_sending_refused'), await metric('payouts_lease_held')]).toEqual([0, 0]);
});

it('pages and metrics are served while Redis is unavailable or hangs', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const { metric, readyz, url, platformId } = await startWatchedWorker({ redis });
  const account = { platform_id: String(platformId) };
  await until('the lease', async () => (await metric('payouts_lease_held')) === 1);
  const read = async (): Promise<string> => {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5_000) });
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    return response.text();
  };
  const untilUp = async (): Promise<void> =>
    until('Redis is back', async () => readMetric(await read(), 'payouts_redis_up') === 1);
  await untilUp();

  process.kill(redis.pid, 'SIGSTOP');
  const hung = await read();
  process.kill(redis.pid, 'SIGCONT');
  expect(readMetric(hung, 'payouts_redis_up')).toBe(0);
  expect(readMetric(hung, 'payouts_paused', account)).toBeUndefined();
  expect(readMetric(hung, 'payouts_lease_held', account)).toBe(1);
  await untilUp();

  await redis.stop();
  const accounts = [{ headline: 'Redis does not respond', paused: null, pausedReason: null }];
  expect(await readyz()).toMatchObject([503, { ready: false, redis: 'unavailable', accounts }]);
  expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
  expect(readMetric(await read(), 'payouts_redis_up')).toBe(0);
  await redis.startAgain();
  await untilUp();
  await until('ready again', async () => (await readyz())[0] === 200);
});

describe('the health server', () => {
  const metrics = createWorkerMetrics({ version: '1.2.3' });
  const options = { host: '127.0.0.1', port: 0, metrics, accounts: () => [] };

  it('is alive but not ready before the worker exists, and has no other pages', async () => {
    const { url } = closeAfterTest(await startHealthServer(options));
    expect(await ask(`${url}/healthz`)).toEqual([200, { alive: true }]);
    expect(await ask(`${url}/readyz`)).toEqual([503, { ready: false, redis: 'unavailable', accounts: [] }]);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('\npayouts_redis_up 0\n');
    const port = Number(new URL(url).port);
    await expect(startHealthServer({ ...options, port })).rejects.toThrow(`127.0.0.1 port ${port}`);
    expect((await ask(`${url}/`))[0]).toBe(404);
    expect((await ask(`${url}/healthz`, { method: 'POST', body: 'x' }))[0]).toBe(405);
    expect((await fetch(`${url}/healthz?from=probe`, { method: 'HEAD' })).status).toBe(200);
  });

  it('of notifications answers 500 where metrics cannot be collected, and goes on', async () => {
    const status = new NotifyStatus();
    status.registry.metrics = async () => Promise.reject(new Error('no metrics'));
    const server = await startNotifyServer(status, '127.0.0.1', 0);
    afterTest(() => {
      server.close();
    });
    expect(await ask(`${server.url}/metrics`)).toEqual([500, { error: 'no metrics' }]);
    expect(await ask(`${server.url}/healthz`)).toEqual([200, { alive: true }]);
  });
});
