import { parseAct, type SignedAct } from '../../../src/control/approvals/act.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { systemClock } from '../../../src/base/clock.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import type { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { makePrivateKey, TEST_AUDIENCE } from '../../control/support/keys.js';
import { begin, NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';

/** Enqueues payouts that a producer signed, and has the gateway end the one attempt of each. */
export async function sendSigned(
  ledger: PayoutLedger,
  state: 'rejected' | 'unknown',
  ...payoutIds: readonly string[]
): Promise<void> {
  const { connection } = ledger;
  const key = { name: 'shop', privateKey: makePrivateKey() };
  const signer = new IntentSigner({
    key,
    platformId: connection.platformId,
    audience: TEST_AUDIENCE,
    clock: systemClock,
  });
  await ledger.enqueue(
    payoutIds.map((payoutId) => {
      const payout = aPayout(payoutId);
      return { ...payout, signed: signer.sign(payout) };
    }),
  );
  await sendOnce(ledger, state, ...payoutIds);
}

/** Begins one attempt of each, and ends it. */
export async function sendOnce(
  { connection }: PayoutLedger,
  state: 'rejected' | 'unknown',
  ...payoutIds: readonly string[]
): Promise<void> {
  const sender = new RedisSenderLedger(connection, 'reply');
  const lease = await takeLease(sender, 'one');
  for (const payoutId of payoutIds) {
    const outcome = { rejected: { message: 'no funds' }, unknown: { reason: 'no response' } }[state];
    const result = { kind: state, ...outcome } as { kind: 'rejected'; message: string };
    await sender.finishSend(await begin(sender, lease, payoutId), result, NO_BREAKER, 0);
  }
}

/** The hash of the intent of a payout, as a worker makes it. */
export function intentHashOf(platformId: number, payout: Payout): string {
  if (payout.signed === undefined) throw new Error(`${payout.payoutId} is not signed`);
  return hashIntent(intentOf(platformId, payout, payout.signed));
}

/** A stored act. */
export function requireAct(text: string | undefined): SignedAct {
  const act = text === undefined ? undefined : parseAct(text);
  if (act === undefined) throw new Error(`this is no act: ${text ?? 'nothing'}`);
  return act;
}
