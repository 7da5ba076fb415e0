import type { UnreadableRecordError } from '../base/errors.js';
import { ConflictError, NotFoundError } from '../base/errors.js';
import type { Actor, Payout } from '../ledger/payout.js';
import type { PayoutChange, PayoutChanges } from '../ledger/payout-ledger.js';
import { readReadable } from '../ledger/payout-queries.js';
import type { PayoutState } from '../ledger/states.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { DecisionSigner } from './decision-signer.js';

/** One decision of an operator about payouts. */
interface Decision extends Pick<PayoutChanges, 'from' | 'to' | 'source'> {
  readonly payouts: readonly DecidedChange[];
  /** See {@link PayoutChanges}. @defaultValue true */
  readonly isOneAct?: boolean;
}

interface DecidedChange extends Pick<PayoutChange, 'payoutId' | 'attempt'> {
  /** The payment, if it becomes `in_progress`, and its transaction. */
  readonly gatewayId?: string | undefined;
  readonly txhash?: string | undefined;
  /** The attempt that the signer states as unpaid. @defaultValue the payout's last */
  readonly unpaidAttempt?: number | undefined;
}

/**
 * Applies one decision to payouts in one short script, and adds their jobs. The jobs of cancelled ones stay until
 * {@link sweepCancelledJobs}.
 * @param signer - signs for each payout to send again that an attempt paid nothing
 * @returns for each payout, in order, undefined if it was changed, or the NotFoundError or ConflictError
 * @throws RedisUnavailableError if the outcome is unknown; asking again is safe; errors of the signer
 */
export async function changeManyPayouts(
  account: LedgerAccess,
  decision: Decision,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<(Error | undefined)[]> {
  const { from, to, isOneAct = true, source } = decision;
  const needsJob = to === 'queued' || to === 'in_progress';
  // First: a failure here must cost no signature that needed a touch.
  const queues = needsJob ? await account.openQueues() : undefined;
  const changes =
    signer !== undefined && to === 'queued'
      ? await signEach(account, decision, actor, signer)
      : decision.payouts.map((payout) => toChange(payout, to));
  const payouts = changes.filter((change): change is PayoutChange => !(change instanceof Error));
  const replies =
    payouts.length === 0 ? [] : await account.ledger.changeMany({ from, to, ...actor, isOneAct, source, payouts });
  const changed = payouts.filter((_, index) => replies[index] === undefined).map(({ payoutId }) => payoutId);
  if (needsJob) await queues?.relay.tryDeliver(to, changed);
  const inOrder = replies.values();
  return changes.map((change) => (change instanceof Error ? change : inOrder.next().value));
}

/**
 * As {@link changeManyPayouts} for one payout, which is an act of its own.
 * @returns the changed payout
 * @throws NotFoundError, ConflictError
 */
export async function changeOnePayout(
  account: LedgerAccess,
  { from, to, ...payout }: Pick<Decision, 'from' | 'to'> & DecidedChange,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<Payout> {
  const decision = { from, to, payouts: [payout], isOneAct: false };
  const [error] = await changeManyPayouts(account, decision, actor, signer);
  if (error !== undefined) throw error;
  return account.ledger.require(payout.payoutId);
}

/** What an operator's file says besides must not reach the ledger. */
function toChange({ payoutId, attempt, gatewayId, txhash }: DecidedChange, to: PayoutState): PayoutChange {
  return { payoutId, attempt, ...(to === 'in_progress' && gatewayId !== undefined && { gatewayId, txhash }) };
}

/** @returns for each payout the change with its signed act, or why it cannot have one */
async function signEach(
  { ledger: { connection } }: LedgerAccess,
  { from, payouts }: Decision,
  actor: Actor,
  signer: DecisionSigner,
): Promise<(PayoutChange | Error)[]> {
  const payoutIds = payouts.map(({ payoutId }) => payoutId);
  const lost = new Map<string, UnreadableRecordError>();
  const read = await readReadable(connection, payoutIds, (error, payoutId) => lost.set(payoutId, error));
  const found = new Map(read.map((payout) => [payout.payoutId, payout]));
  const signed: (PayoutChange | Error)[] = [];
  // One by one: a hardware key is touched for each.
  for (const { payoutId, attempt: decided, unpaidAttempt } of payouts) {
    const payout = found.get(payoutId) ?? lost.get(payoutId);
    if (payout instanceof Error) {
      signed.push(payout);
      continue;
    }
    const attempt = payout?.attempt;
    try {
      if (payout === undefined) throw new NotFoundError(`Payout ${payoutId} not found`);
      // A payout without an attempt, held or made unknown by an adoption, needs no statement.
      const isStated = attempt !== 0 || unpaidAttempt !== undefined;
      const decision = { from, attempt: decided, unpaidAttempt };
      const act = isStated ? await signer.signResend(connection, payout, decision, actor) : undefined;
      // Of this attempt: the act must not be stored with a later one.
      signed.push({ payoutId, attempt: isStated ? attempt : (decided ?? attempt), act });
    } catch (error) {
      if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
      signed.push(error);
    }
  }
  return signed;
}

/**
 * Includes jobs left by an interrupted command. Each would delay later payouts by a second; otherwise jobs that stay do
 * no harm.
 * @returns the number of removed jobs
 */
export async function sweepCancelledJobs({ ledger, openQueues }: LedgerAccess, signal: AbortSignal): Promise<number> {
  const { queues } = await openQueues();
  const { removeCancelledJobs } = await import('../queues/remove-cancelled-jobs.js');
  return removeCancelledJobs(ledger.connection, queues.withdraw, signal);
}
