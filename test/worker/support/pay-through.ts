import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPayoutWorker } from '../../../src/control/payout-worker.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { RedisClient } from '../../../src/base/redis.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { startSandbox } from '../../../src/sandbox/start-sandbox.js';
import { payoutInput } from '../../producer/support/payout-input.js';
import { newPlatformId } from '../../support/account.js';

/** Enqueues one payout by `redisUrl`, and sends it by a worker that is given the connection. */
export async function payThrough(connection: RedisClient, redisUrl: string): Promise<Payout> {
  const account = { platformId: newPlatformId(), secretKey: 'k-own' };
  const journalDir = await mkdtemp(join(tmpdir(), 'payouts-own-'));
  try {
    await using sandbox = await startSandbox({ accounts: [account], settleAfterMs: 50 });
    await using producer = new PayoutProducer({ redisUrl, platformId: account.platformId });
    const fast = { leaseMs: 500, quarantineMs: 0, pollMinMs: 50, baseUrl: sandbox.url };
    await using worker = await createPayoutWorker({ connection, journalDir, accounts: [{ ...account, ...fast }] });
    await producer.enqueue(payoutInput());
    const payout = await producer.waitFor('p-1', { timeoutMs: 60_000 });
    await worker.stop();
    return payout;
  } finally {
    await rm(journalDir, { recursive: true });
  }
}
