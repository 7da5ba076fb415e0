import type { Actor } from '../ledger/actor.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { PayoutState } from '../ledger/states.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { DecisionSigner } from './decision-signer.js';

export interface Requeue {
  readonly payoutId: string;
  readonly from: PayoutState;
  readonly attempt?: number;
  /** The attempt that the signer states as unpaid. @defaultValue the payout's last */
  readonly unpaidAttempt?: number | undefined;
}

/**
 * Queues an unpaid payout with a new job.
 * @param signer - signs that an attempt paid nothing, for workers that require it
 * @throws NotFoundError
 * @throws ConflictError if it is not in the state `from`, was sent again since, or may still be on its way
 * @throws RedisUnavailableError; errors of the signer
 */
export async function requeuePayout(
  { ledger, openQueues }: LedgerAccess,
  requeue: Requeue,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<Payout> {
  const { relay } = await openQueues();
  const { payoutId, from, attempt } = requeue;
  const signed = signer === undefined ? {} : await sign(ledger, requeue, actor, signer);
  const decided = attempt === undefined ? {} : { attempt };
  await ledger.change({ payoutId, from, ...decided, ...signed, to: 'queued', ...actor });
  await relay.tryDeliver('queued', [payoutId]);
  return ledger.require(payoutId);
}

/** @returns the act, and the payout's last attempt: the act must not be stored with a later one */
async function sign(
  ledger: PayoutLedger,
  requeue: Requeue,
  actor: Actor,
  signer: DecisionSigner,
): Promise<{ readonly act?: string; readonly attempt?: number }> {
  const payout = await ledger.require(requeue.payoutId);
  // A payout without an attempt, held or made unknown by an adoption, needs no statement.
  if (payout.attempt === 0 && requeue.unpaidAttempt === undefined) return {};
  return { act: await signer.signResend(ledger.connection, payout, requeue, actor), attempt: payout.attempt };
}
