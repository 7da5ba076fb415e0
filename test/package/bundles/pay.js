// Without the dashboard: Bull Board reads its pages from its own folder.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPayoutWorker } from 'payout-queue';
import { PayoutProducer } from 'payout-queue/producer';

const [redisUrl, baseUrl, platformId] = process.argv.slice(2);
const account = {
  platformId: Number(platformId),
  secretKey: 'k-sandbox-only',
  baseUrl,
  leaseMs: 500,
  quarantineMs: 0,
  pollMinMs: 50,
};
process.once('uncaughtException', ({ message }) => {
  process.stdout.write(message);
  process.exitCode = 1;
});
const journalDir = await mkdtemp(join(tmpdir(), 'journal-'));
const producer = new PayoutProducer({ redisUrl, platformId: account.platformId });
const worker = await createPayoutWorker({ redisUrl, accounts: [account], journalDir });
const payout = { payoutId: 'order-1', paymentId: 6, addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
const refused = await producer.enqueue({ ...payout, amount: '0' }).catch((error) => error);
await producer.enqueue({ ...payout, amount: '1' });
const { state } = await producer.waitFor('order-1', { timeoutMs: 20_000 });
await worker.stop();
await producer.close();
await rm(journalDir, { recursive: true });
// A bundler that minifies gives classes other names.
process.stdout.write(`${refused.name} ${state}`);
