import type { Actor } from '../ledger/actor.js';
import { changePayouts, type ManyChanges } from '../ledger/change-payouts.js';
import type { LedgerAccess } from '../queues/open-ledger.js';

/**
 * Carries out one decision about many payouts, in one short script. Those that are queued by it get their jobs; the jobs of
 * cancelled ones stay until {@link sweepCancelledJobs}.
 * @returns for each payout, in order, undefined where it was changed, or the NotFoundError or ConflictError that says why not
 * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
 */
export async function changeManyPayouts(
  { ledger, openQueues }: LedgerAccess,
  change: ManyChanges,
  actor: Actor,
): Promise<(Error | undefined)[]> {
  const { relay } = await openQueues();
  const errors = await changePayouts(ledger, change, actor);
  if (change.to === 'queued') {
    const queued = change.payouts.filter((_, index) => errors[index] === undefined);
    await relay.tryDeliver(
      'queued',
      queued.map(({ payoutId }) => payoutId),
    );
  }
  return errors;
}

/**
 * Removes the jobs of cancelled payouts, also those that an interrupted command left: each would cost the payouts behind it
 * a second.
 * @returns how many were removed
 * @throws RedisUnavailableError; jobs that stay do no harm
 */
export async function sweepCancelledJobs(
  { ledger, openQueues, clock }: LedgerAccess,
  signal: AbortSignal,
): Promise<number> {
  const { queues } = await openQueues();
  const { removeCancelledJobs } = await import('../queues/remove-cancelled-jobs.js');
  return removeCancelledJobs(ledger.connection, queues.withdraw, { clock, signal });
}
