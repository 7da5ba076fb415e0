import type { Actor } from '../ledger/actor.js';
import type { Payout } from '../ledger/payout.js';
import { wrongStateError } from '../ledger/state-change.js';
import { UNSENT_STATES } from '../ledger/states.js';
import type { LedgerAccess } from './open-ledger.js';

/**
 * See `PayoutProducer.cancel`.
 * @param jobsAdded - waits for jobs that are being added, because one may be the payout's
 */
export async function cancelPayout(
  { ledger, openQueues, logger }: LedgerAccess,
  payoutId: string,
  actor: Actor,
  jobsAdded: () => Promise<void> = async () => Promise.resolve(),
): Promise<Payout> {
  const { state } = await ledger.require(payoutId);
  if (!UNSENT_STATES.includes(state)) throw wrongStateError(payoutId, state, UNSENT_STATES, 'cancelled');
  const { queues } = await openQueues();
  await ledger.change({ payoutId, from: state, to: 'cancelled', ...actor });
  const payout = await ledger.require(payoutId);
  try {
    await jobsAdded();
    await queues.removeWithdrawJob(payout);
  } catch (error) {
    // A job that stays finds a payout that is not queued, and does nothing.
    logger.debug({ payoutId, reason: (error as Error).message }, 'the job of a cancelled payout stays');
  }
  return payout;
}
