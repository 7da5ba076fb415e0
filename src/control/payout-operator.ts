import {
  PayoutOperator as Operator,
  type PayoutOperatorOptions as OperatorOptions,
  type SharedAccount,
} from '../operator/payout-operator.js';
import type { ActSigner } from './approvals/act-signer.js';
import { SignedDecisions } from './operator/sign-decision.js';

/** The account, the connections and the signer of a `PayoutOperator`. */
export interface PayoutOperatorOptions extends OperatorOptions {
  /**
   * Signs `retry`, `resolve` as not sent, `resume` and `adoptLedger`, as workers with a keyring require. See
   * `openActSigner`. @defaultValue none: nothing is signed
   */
  readonly signer?: ActSigner | undefined;
}

/**
 * Lets an operator decide about payouts that are `unknown`, `rejected` or `held`, cancel, pause, resume, and adopt a
 * ledger that forgot sends. The `payouts` commands use it. Every change is recorded with the actor's name and reason.
 * It needs no running worker. Every call but an adoption fails within seconds if Redis is unavailable. If the `signer`
 * throws, the call ends before any change.
 * @example
 * const operator = new PayoutOperator({ platformId, redisUrl });
 * await operator.retry('invoice-77', { by: 'ann', reason: 'balance topped up' });
 * await operator.close();
 */
export class PayoutOperator extends Operator {
  /** @throws InvalidConfigError if an option is invalid */
  constructor(options: PayoutOperatorOptions | (SharedAccount & Pick<PayoutOperatorOptions, 'signer'>)) {
    super(options, options.signer && new SignedDecisions(options.signer));
  }
}
