import { PayoutProducer } from 'payout-queue';
import type { BenchmarkRun } from '../benchmark.js';
import { completePayouts, holdLedger } from '../ledger-account.js';
import { samplePayouts } from '../sample-payouts.js';

/** The batch that all queued payouts are of. */
export const LARGE_BATCH = 'large';
const STEP = 20_000;

/** Completed payouts first, as the events of a ledger are; then those that wait, all of one batch. */
export async function fillAccount(
  redisUrl: string,
  platformId: number,
  { completed, queued }: Record<'completed' | 'queued', number>,
  note: BenchmarkRun['note'],
): Promise<void> {
  const account = await holdLedger(redisUrl, platformId);
  for (let start = 0; start < completed; start += STEP) {
    const step = samplePayouts(Math.min(STEP, completed - start), `done-${start}`);
    await completePayouts(account, step);
    note(`${start + step.length} payouts are completed`);
  }
  await account.senderLedger.releaseLease(account.lease);
  await account.close();
  const producer = new PayoutProducer({ redisUrl, platformId });
  for (let start = 0; start < queued; start += STEP) {
    const step = samplePayouts(Math.min(STEP, queued - start), `wait-${String(start).padStart(7, '0')}`);
    await producer.enqueueMany(step.map((payout) => ({ ...payout, batch: LARGE_BATCH })));
    note(`${start + step.length} payouts are queued`);
  }
  await producer.close();
}
