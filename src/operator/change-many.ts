import { ConflictError, NotFoundError } from '../errors.js';
import type { Actor } from '../ledger/actor.js';
import { changePayouts, type ChangedPayout, type ManyChanges } from '../ledger/change-payouts.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { readPayouts } from '../ledger/payout-queries.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { DecisionSigner } from './decision-signer.js';

/**
 * Carries out one decision about many payouts, in one short script. Those that are queued by it get their jobs; the jobs of
 * cancelled ones stay until {@link sweepCancelledJobs}.
 * @param signer - signs of each payout that is to be sent again that its last attempt paid nothing
 * @returns for each payout, in order, undefined where it was changed, or the NotFoundError or ConflictError that says why not
 * @throws RedisUnavailableError when it may or may not have happened; asking again is safe; what the signer throws
 */
export async function changeManyPayouts(
  { ledger, openQueues }: LedgerAccess,
  change: ManyChanges,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<(Error | undefined)[]> {
  const { relay } = await openQueues();
  const errors =
    signer === undefined || change.to !== 'queued'
      ? await changePayouts(ledger, change, actor)
      : await changeSigned(ledger, change, actor, signer);
  if (change.to === 'queued') {
    const queued = change.payouts.filter((_, index) => errors[index] === undefined);
    await relay.tryDeliver(
      'queued',
      queued.map(({ payoutId }) => payoutId),
    );
  }
  return errors;
}

/** As {@link changePayouts}, with a signed act for each: those that cannot have one are left as they are. */
async function changeSigned(
  ledger: PayoutLedger,
  { from, to, payouts }: ManyChanges,
  actor: Actor,
  signer: DecisionSigner,
): Promise<(Error | undefined)[]> {
  const read = await readPayouts(
    ledger.connection,
    payouts.map(({ payoutId }) => payoutId),
  );
  const found = new Map(read.map((payout) => [payout.payoutId, payout]));
  const errors: (Error | undefined)[] = [];
  const signed: (ChangedPayout & { readonly index: number })[] = [];
  for (const [index, { payoutId, attempt }] of payouts.entries()) {
    const payout = found.get(payoutId);
    if (payout === undefined) {
      errors[index] = new NotFoundError(`Payout ${payoutId} not found`);
      continue;
    }
    try {
      // One by one: a hardware key is touched for each.
      const act =
        payout.attempt === 0 ? '' : await signer.signResend(ledger.connection, payout, { from, attempt }, actor);
      signed.push({ index, payoutId, attempt: payout.attempt, act });
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      errors[index] = error;
    }
  }
  if (signed.length === 0) return errors;
  const replies = await changePayouts(ledger, { from, to, payouts: signed }, actor);
  for (const [place, { index }] of signed.entries()) errors[index] = replies[place];
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
