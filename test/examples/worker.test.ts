import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runExample } from './support.js';

const platformId = newPlatformId();
const secretKey = 'k-sandbox-only';
let sandbox: Sandbox;
let journalDir: string;
let producer: PayoutProducer;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey }], settleAfterMs: 0 });
  journalDir = await mkdtemp(join(tmpdir(), 'payouts-example-'));
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
  await sandbox.close();
  await rm(journalDir, { recursive: true });
});

describe('examples/worker.ts', () => {
  it('pays, reports its health and metrics, and ends in good order', async () => {
    const healthPort = String(await findFreePort());
    const example = runExample('worker.ts', {
      GATEWAY_PLATFORM_ID: String(platformId),
      GATEWAY_BASE_URL: sandbox.url,
      GATEWAY_SECRET_KEY: secretKey,
      SEND_JOURNAL_DIR: journalDir,
      HEALTH_PORT: healthPort,
    });
    await producer.enqueue({ payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' });
    expect(await producer.waitFor('a', { timeoutMs: 60_000 })).toMatchObject({ state: 'completed' });
    expect((await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status).toBe(200);
    const metrics = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text();
    expect(metrics).toContain('payouts_');
    const { ended, output } = await example.end('SIGTERM');
    expect({ ended, output }).toMatchObject({ ended: [0, null] });
    expect(output).toContain('worker ended');
    expect((await producer.stats()).sender).toBeNull();
  });
});
