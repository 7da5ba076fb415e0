/**
 * Enqueues a signed payout, and books it only where a worker signed how it ended: nothing that is in Redis is believed.
 *
 *     PAYOUT_SIGNER=file:/etc/payouts/shop.pem PAYOUT_SIGNER_NAME=shop PAYOUT_KEYS_FILE=/etc/payouts/keys.yaml \
 *       GATEWAY_PLATFORM_ID=4242 PAYOUT_AUDIENCE=production npx tsx examples/signing/pay-signed.ts
 */
import { openSigner, PayoutProducer } from 'payout-queue/producer';

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379', GATEWAY_PLATFORM_ID: platformId = '4242' } = process.env;
const { PAYOUT_SIGNER: from = 'file:shop.pem', PAYOUT_SIGNER_NAME: name = 'shop' } = process.env;
const { PAYOUT_KEYS_FILE: keysFile = 'keys.yaml', PAYOUT_AUDIENCE: audience = 'production' } = process.env;

const producer = new PayoutProducer({
  redisUrl,
  platformId: Number(platformId),
  // A file from `payouts keys generate shop --role producer …`, an ssh-agent or a program (docs/control.md#signers);
  // `name` is that of its entry in the keyring of the workers.
  signer: openSigner(from, { name }),
  // Which environment is to pay: what `payouts doctor` shows on the worker's host.
  audience,
  // Has the key of the worker: with it each payout says in `verified` whether a worker signed its end.
  keysFile,
});

try {
  const { payoutId } = await producer.enqueue({
    payoutId: 'withdrawal-88132',
    paymentId: 6,
    amount: '25.50',
    addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
    requestedBy: 'ann',
  });
  const { state, txhash = '', verified, held } = await producer.waitFor(payoutId, { timeoutMs: 30_000 });
  if (state === 'completed' && verified === true) {
    process.stdout.write(`${payoutId} is paid: ${txhash}\n`);
  } else {
    // Anyone who writes to Redis can show any state. Before it is paid in another way, ask the gateway.
    const why = held === undefined ? 'no worker signed that' : held.message;
    process.stderr.write(`${payoutId} is shown as ${state}, and not booked: ${why}\n`);
    process.exitCode = 1;
  }
} finally {
  await producer.close();
}
