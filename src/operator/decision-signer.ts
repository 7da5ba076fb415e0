import type { Actor, Payout } from '../ledger/payout.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { PayoutState } from '../ledger/states.js';

/** A payout that an operator considers unpaid. */
export interface ResendDecision {
  readonly from: PayoutState;
  /** The attempt that the operator decided about: a later one is a conflict. */
  readonly attempt?: number | undefined;
  /** The attempt that paid nothing, by default the payout's last. */
  readonly unpaidAttempt?: number | undefined;
}

/**
 * A port: signs an operator's decisions for workers that act on nothing else. Each call returns the signed act, as
 * JSON. If it throws, the decision ends.
 */
export interface DecisionSigner {
  /**
   * Signs that an attempt paid nothing, so that the payout is sent again.
   * @throws ConflictError if the payout is in another state, was sent again, or is unsigned or altered
   */
  signResend(ledger: LedgerConnection, payout: Payout, decision: ResendDecision, actor: Actor): Promise<string>;
  signAccountAct(ledger: LedgerConnection, act: 'resume' | 'adopt', actor: Actor): Promise<string>;
}
