import type { Actor, Payout } from '../ledger/payout.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { PayoutState } from '../ledger/states.js';

/** A payout that an operator takes for not paid. */
export interface ResendDecision {
  readonly from: PayoutState;
  /** The attempt that was decided about, where a later one is not meant. */
  readonly attempt?: number | undefined;
  /** The attempt of which the act states that it paid nothing, where that is not the payout's last. */
  readonly unpaidAttempt?: number | undefined;
}

/** A port: signs what an operator decides, for workers that act on nothing else. What it throws ends the decision. */
export interface DecisionSigner {
  /**
   * Signs that an attempt of a payout paid nothing, so that it is sent again.
   * @returns the signed act, as JSON
   * @throws ConflictError when the payout is in another state, was sent again since, or cannot be signed about
   */
  signResend(ledger: LedgerConnection, payout: Payout, decision: ResendDecision, actor: Actor): Promise<string>;
  /** Signs a decision about the whole account. @returns the signed act, as JSON */
  signAccountAct(ledger: LedgerConnection, act: 'resume' | 'adopt', actor: Actor): Promise<string>;
}
