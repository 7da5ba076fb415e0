import type { Actor } from '../ledger/actor.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutState } from '../ledger/states.js';
import type { LedgerAccess } from '../queues/open-ledger.js';

/** The payout, the state that it is in, and the attempt, where a later one is not meant. */
export interface Requeue {
  readonly payoutId: string;
  readonly from: PayoutState;
  readonly attempt?: number;
}

/**
 * Puts a payout that was not paid back into the queue, with a new job.
 * @throws NotFoundError
 * @throws ConflictError when it is not in the state `from`, was sent again since, or may still be on its way
 * @throws RedisUnavailableError
 */
export async function requeuePayout(
  { ledger, openQueues }: LedgerAccess,
  requeue: Requeue,
  actor: Actor,
): Promise<Payout> {
  const { relay } = await openQueues();
  await ledger.change({ ...requeue, to: 'queued', ...actor });
  await relay.tryDeliver('queued', [requeue.payoutId]);
  return ledger.require(requeue.payoutId);
}
