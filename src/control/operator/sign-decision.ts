import { signAct, type ActSigner } from '../approvals/act-signer.js';
import { hashIntent } from '../intents/intent.js';
import { intentOf } from '../intents/signed-payout.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import { StatementError } from '../intents/statement.js';
import { ConflictError } from '../../errors.js';
import type { Actor } from '../../ledger/actor.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import { toChangeError, wrongStateError } from '../../ledger/state-change.js';
import type { PayoutState } from '../../ledger/states.js';

/** A payout that an operator takes for not paid. */
export interface ResendDecision {
  readonly from: PayoutState;
  /** The attempt that was decided about, where a later one is not meant. */
  readonly attempt?: number | undefined;
  /** The attempt of which the act states that it paid nothing, where that is not the payout's last. */
  readonly unpaidAttempt?: number | undefined;
}

/**
 * Signs that an attempt of a payout paid nothing, so that a worker with a keyring sends it again.
 * @returns the signed act, as JSON
 * @throws ConflictError when the payout is in another state, was sent again since, or carries no producer's signature
 * @throws InvalidInputError when the reason cannot be signed; what the signer throws
 */
export async function signResend(
  signer: ActSigner,
  { connection: { platformId, clock } }: PayoutLedger,
  payout: Payout,
  { from, attempt, unpaidAttempt = payout.attempt }: ResendDecision,
  { reason }: Actor,
): Promise<string> {
  const { payoutId, state, signed } = payout;
  // One that is queued may be so by this very decision, whose reply was lost. Nobody signs for nothing.
  const isSent = (state === from || state === 'queued') && unpaidAttempt > 0;
  if (!isSent) throw wrongStateError(payoutId, state, from, 'queued');
  if (attempt !== undefined && attempt !== payout.attempt) {
    throw toChangeError({ kind: 'sent_since', attempt: payout.attempt }, { payoutId, from, to: 'queued' });
  }
  if (signed === undefined) throw unsignedError(payout);
  const intent = hashPayout(platformId, payout, signed);
  const content = { act: 'resend', payoutId, intent, attempt: unpaidAttempt, reason } as const;
  return signAct(signer, platformId, content, clock.wallNow());
}

function hashPayout(platformId: number, payout: Payout, signed: StoredSignature): string {
  try {
    return hashIntent(intentOf(platformId, payout, signed));
  } catch (error) {
    if (!(error instanceof StatementError)) throw error;
    throw new ConflictError(`Payout ${payout.payoutId} was altered in Redis since it was signed: ${error.message}`, [
      error.field,
    ]);
  }
}

function unsignedError({ payoutId, state }: Payout): ConflictError {
  const way = state === 'unknown' ? 'write it off' : 'cancel it';
  return new ConflictError(
    `Payout ${payoutId} carries no signature of a producer, so an act about it would say nothing, and a worker with a keyring does not send it. If it is to be paid, ${way} and enqueue the payment under a new payoutId with a producer that has a signing key`,
    ['signed'],
  );
}

/**
 * Signs a decision about the whole account.
 * @returns the signed act, as JSON; undefined without a signer
 * @throws InvalidInputError when the reason cannot be signed; what the signer throws
 */
export async function signAccountAct(
  signer: ActSigner | undefined,
  act: 'resume' | 'adopt',
  { connection: { platformId, clock } }: PayoutLedger,
  { reason }: Actor,
): Promise<string | undefined> {
  if (signer === undefined) return undefined;
  const content = { act, payoutId: '', intent: '', attempt: undefined, reason };
  return signAct(signer, platformId, content, clock.wallNow());
}
