/**
 * A test of an application that pays out, without a gateway account: a Redis and a sandbox gateway of its own, and faults on
 * demand. Any test runner will do; this one is Node's.
 *
 *     npx tsx --test examples/sandbox.test.ts
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createPayoutWorker, PayoutProducer, type PayoutWorker } from 'payout-queue';
import { startLocalRedis, type LocalRedis } from 'payout-queue/local-redis';
import { startSandbox, type Sandbox } from 'payout-queue/sandbox';

const account = { platformId: 4242, secretKey: 'k-sandbox-only' };
const addressTo = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

let redis: LocalRedis;
let sandbox: Sandbox;
let journalDir: string;
let worker: PayoutWorker;
let producer: PayoutProducer;

before(async () => {
  redis = await startLocalRedis();
  sandbox = await startSandbox({ accounts: [account], settleAfterMs: 50 });
  journalDir = await mkdtemp(join(tmpdir(), 'journal-'));
  producer = new PayoutProducer({ redisUrl: redis.url, platformId: account.platformId });
  worker = await createPayoutWorker({
    redisUrl: redis.url,
    accounts: [
      { ...account, baseUrl: sandbox.url, leaseMs: 500, quarantineMs: 0, pollMinMs: 50, withdrawTimeoutMs: 500 },
    ],
    journalDir,
  });
});

after(async () => {
  await worker.stop();
  await producer.close();
  await sandbox.close();
  await redis.stop();
  await rm(journalDir, { recursive: true });
});

test('a payout is paid once', async () => {
  await producer.enqueue({ payoutId: 'order-1', paymentId: 6, amount: '12.5', addressTo });
  const payout = await producer.waitFor('order-1', { timeoutMs: 20_000 });
  assert.equal(payout.state, 'completed');
  assert.equal(sandbox.payments().length, 1);
});

test('a payout whose response is lost is unknown, and not sent again', async () => {
  // The sandbox pays and never responds: only an operator can find that out.
  sandbox.setFaults([{ kind: 'hang' }]);
  await producer.enqueue({ payoutId: 'order-2', paymentId: 6, amount: '3', addressTo });
  const payout = await producer.waitFor('order-2', { timeoutMs: 20_000 });
  assert.equal(payout.state, 'unknown');
  assert.equal(sandbox.payments().length, 2);
});
