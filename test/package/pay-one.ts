/** A payout from the queue to the gateway, by all entry points. The runner copies it into each application. */
import { deepEqual } from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPayoutWorker, InvalidInputError, PayoutError, PayoutProducer } from 'payout-queue';
import { startDashboard } from 'payout-queue/dashboard';
import { startLocalRedis } from 'payout-queue/local-redis';
import { startSandbox } from 'payout-queue/sandbox';

export async function payOne() {
  const account = { platformId: 4242, secretKey: 'k-sandbox-only' };
  const payout = { payoutId: 'order-1', paymentId: 6, addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  const redis = await startLocalRedis();
  const sandbox = await startSandbox({ accounts: [account], settleAfterMs: 50 });
  const journalDir = await mkdtemp(join(tmpdir(), 'journal-'));
  const own = { platformId: account.platformId, redisUrl: redis.url };
  const dashboard = await startDashboard({ ...own, host: '127.0.0.1', port: 0 });
  const producer = new PayoutProducer(own);
  const timing = { leaseMs: 500, quarantineMs: 0, pollMinMs: 50, withdrawTimeoutMs: 500 };
  const accounts = [{ ...account, ...timing, baseUrl: sandbox.url }];
  const worker = await createPayoutWorker({ redisUrl: redis.url, accounts, journalDir });
  try {
    const code = await producer.enqueue({ ...payout, amount: '0' }).then(() => 'NONE', toCode);
    await producer.enqueue({ ...payout, amount: '12.5' });
    const { state } = await producer.waitFor('order-1', { timeoutMs: 20_000 });
    const { status } = await fetch(new URL('payouts/order-1', dashboard.url));
    const seen = { state, payments: sandbox.payments().length, code, status };
    deepEqual(seen, { state: 'completed', payments: 1, code: 'INVALID_INPUT', status: 200 });
  } finally {
    await worker.stop();
    await producer.close();
    await dashboard.close();
    await sandbox.close();
    await redis.stop();
    await rm(journalDir, { recursive: true });
  }
}

/** Of an error that is caught by its class. */
function toCode(error: unknown) {
  return error instanceof InvalidInputError && error instanceof PayoutError ? error.code : 'NOT_TYPED';
}
