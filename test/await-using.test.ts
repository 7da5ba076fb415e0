import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ClosedError } from '../src/base/errors.js';
import { PayoutOperator } from '../src/control/payout-operator.js';
import { PayoutProducer } from '../src/control/payout-producer.js';
import { createPayoutWorker } from '../src/control/payout-worker.js';
import { startDashboard } from '../src/dashboard/start-dashboard.js';
import { startSandbox } from '../src/sandbox/start-sandbox.js';
import { newPlatformId, testRedisUrl } from './support/account.js';

const redisUrl = testRedisUrl();
const platformId = newPlatformId();
const account = { platformId, secretKey: 'k-using' };

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-using-'));
});
afterAll(async () => rm(dir, { recursive: true }));

it('a producer and an operator are closed at the end of the block', async () => {
  let [producer, operator]: [PayoutProducer?, PayoutOperator?] = [];
  {
    await using first = new PayoutProducer({ platformId, redisUrl });
    await using second = new PayoutOperator({ platformId, redisUrl });
    [producer, operator] = [first, second];
    expect(await first.get('p-1')).toBeUndefined();
  }
  await expect(producer.get('p-1')).rejects.toThrow(ClosedError);
  await expect(operator.cancel('p-1', { by: 'ann', reason: 'x' })).rejects.toThrow(ClosedError);
});

it('a worker, the sandbox and the dashboard server end with the block', async () => {
  let [url, page, role]: [string?, string?, (() => string | undefined)?] = [];
  {
    await using sandbox = await startSandbox({ accounts: [account] });
    await using worker = await createPayoutWorker({
      redisUrl,
      accounts: [{ ...account, baseUrl: sandbox.url }],
      journalDir: join(dir, 'journal'),
      allowVolatileRedis: true,
    });
    await using dashboard = await startDashboard({ redisUrl, platformId, host: '127.0.0.1', port: 0 });
    [url, page, role] = [sandbox.url, dashboard.url, () => worker.accounts[0]?.status.role];
    expect((await fetch(`${url}/__sandbox/stats`)).status).toBe(200);
    expect((await fetch(`${page}style.css`)).status).toBe(200);
    expect(role()).not.toBe('stopped');
  }
  await expect(fetch(url)).rejects.toThrow('fetch failed');
  await expect(fetch(page)).rejects.toThrow('fetch failed');
  expect(role()).toBe('stopped');
});
