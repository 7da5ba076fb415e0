import {
  PayoutOperator as Operator,
  type PayoutOperatorOptions as OperatorOptions,
  type SharedAccount,
} from '../operator/payout-operator.js';
import type { ActSigner } from './approvals/act-signer.js';
import { SignedDecisions } from './operator/sign-decision.js';

/** Which account an operator decides about, how it reaches Redis and the gateway, and how it signs. */
export interface PayoutOperatorOptions extends OperatorOptions {
  /**
   * Signs `retry`, `resolve` as not sent, `resume` and `adoptLedger`: workers with a keyring send again only what an
   * operator signed. See `openActSigner`. @defaultValue none: nothing is signed
   */
  readonly signer?: ActSigner | undefined;
}

/**
 * What an operator may do to an account: decide about payouts that are `unknown`, `rejected` or `held`, cancel, pause, resume, and
 * adopt a ledger that forgot sends. The `payouts` commands do the same through it. Every change is recorded with the actor's
 * name and reason. It needs no running worker, and every call but an adoption fails within seconds when Redis is
 * unavailable. With a `signer`, what the signer throws ends a call before anything is changed.
 * @example
 * const operator = new PayoutOperator({ platformId, redisUrl });
 * await operator.retry('invoice-77', { by: 'ann', reason: 'balance topped up' });
 * await operator.close();
 */
export class PayoutOperator extends Operator {
  /** @throws InvalidConfigError when the options cannot be used */
  constructor(options: PayoutOperatorOptions | (SharedAccount & Pick<PayoutOperatorOptions, 'signer'>)) {
    super(options, options.signer && new SignedDecisions(options.signer));
  }
}
