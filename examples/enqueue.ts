/**
 * Enqueues a payout and waits until it is settled.
 *
 *     REDIS_URL=redis://127.0.0.1:6379 GATEWAY_PLATFORM_ID=4242 npx tsx examples/enqueue.ts
 */
import { ConflictError, PayoutProducer, WaitTimeoutError } from 'payout-queue/producer';

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379', GATEWAY_PLATFORM_ID: platformId = '4242' } = process.env;
const producer = new PayoutProducer({ redisUrl, platformId: Number(platformId) });

try {
  // Your own key makes it safe to repeat: the same payoutId with the same data is the same payout.
  const { payoutId, state, created } = await producer.enqueue({
    payoutId: 'withdrawal-88131',
    paymentId: 6,
    amount: '25.50',
    addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
    reference: 'Withdrawal 88131',
  });
  process.stdout.write(`${payoutId} is ${state}${created ? '' : ' (already enqueued)'}\n`);

  const payout = await producer.waitFor(payoutId, { timeoutMs: 30_000 });
  process.stdout.write(`${payoutId} is ${payout.state}${payout.txhash === undefined ? '' : `: ${payout.txhash}`}\n`);
} catch (error) {
  if (!(error instanceof ConflictError || error instanceof WaitTimeoutError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  await producer.close();
}
