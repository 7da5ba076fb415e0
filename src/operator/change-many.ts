import { ConflictError, NotFoundError } from '../base/errors.js';
import type { Actor } from '../ledger/payout.js';
import { type ChangedPayout, changePayouts, type ManyChanges, type PayoutLedger } from '../ledger/payout-ledger.js';
import { readPayouts } from '../ledger/reads/payout-queries.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { DecisionSigner } from './decision-signer.js';

/**
 * Applies one decision to many payouts in one short script. The jobs of cancelled ones stay until {@link
 * sweepCancelledJobs}.
 * @param signer - signs for each payout to send again that its last attempt paid nothing
 * @returns for each payout, in order, undefined if it was changed, or the NotFoundError or ConflictError
 * @throws RedisUnavailableError if the outcome is unknown; asking again is safe; errors of the signer
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

/** As {@link changePayouts}, with a signed act for each. Payouts that cannot have one stay unchanged. */
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
 * Includes jobs left by an interrupted command. Each would delay later payouts by a second; otherwise jobs that stay do
 * no harm.
 * @returns the number of removed jobs
 */
export async function sweepCancelledJobs(
  { ledger, openQueues, clock }: LedgerAccess,
  signal: AbortSignal,
): Promise<number> {
  const { queues } = await openQueues();
  const { removeCancelledJobs } = await import('../queues/remove-cancelled-jobs.js');
  return removeCancelledJobs(ledger.connection, queues.withdraw, { clock, signal });
}
