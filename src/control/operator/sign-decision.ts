import { ConflictError } from '../../base/errors.js';
import type { Actor, Payout } from '../../ledger/payout.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { toChangeError, wrongStateError } from '../../ledger/payout-ledger.js';
import type { DecisionSigner, ResendDecision } from '../../operator/decision-signer.js';
import { signAct, type ActSigning } from '../approvals/sign-act.js';
import { hashIntent, intentOf } from '../intents/intent.js';
import { tryFormat } from '../intents/statement.js';

export class SignedDecisions implements DecisionSigner {
  readonly #signing: ActSigning;

  constructor(signing: ActSigning) {
    this.#signing = signing;
  }

  async signResend(
    { platformId, clock }: LedgerConnection,
    payout: Payout,
    { from, attempt, unpaidAttempt = payout.attempt }: ResendDecision,
    { reason }: Actor,
  ): Promise<string> {
    const { payoutId, state, signed } = payout;
    // A queued payout may result from this same decision, if its reply was lost.
    const isSent = (state === from || state === 'queued') && unpaidAttempt > 0;
    if (!isSent) throw wrongStateError(payoutId, state, from, 'queued');
    if (attempt !== undefined && attempt !== payout.attempt) {
      const refused = { kind: 'sent_since', attempt: payout.attempt } as const;
      throw toChangeError(refused, { payoutId, from, to: 'queued' }, clock.wallNow());
    }
    if (signed === undefined) throw unsignedError(payout);
    const intent = hashPayout(platformId, payout, signed);
    const content = { act: 'resend', payoutId, intent, attempt: unpaidAttempt, reason } as const;
    return signAct(this.#signing, platformId, content, clock.wallNow());
  }

  async signAccountAct(
    { platformId, clock }: LedgerConnection,
    act: 'resume' | 'adopt',
    { reason }: Actor,
  ): Promise<string> {
    const content = { act, payoutId: '', intent: '', attempt: undefined, reason };
    return signAct(this.#signing, platformId, content, clock.wallNow());
  }
}

function hashPayout(platformId: number, payout: Payout, signed: StoredSignature): string {
  const hash = tryFormat(() => hashIntent(intentOf(platformId, payout, signed)));
  if (typeof hash === 'string') return hash;
  const { field, message } = hash;
  throw new ConflictError(`Payout ${payout.payoutId} was altered in Redis since it was signed: ${message}`, [field]);
}

function unsignedError({ payoutId, state }: Payout): ConflictError {
  const way =
    state === 'unknown' ? 'and the gateway confirms that it was not and will not be paid, write it off' : 'cancel it';
  return new ConflictError(
    `Payout ${payoutId} carries no signature of a producer. So an act about it would say nothing, and a worker with a keyring does not send it. If it must be paid, ${way} and enqueue the payment under a new payoutId with a producer that has a signing key`,
    ['signed'],
  );
}
