import { InvalidConfigError } from '../base/errors.js';
import { objectWith, type OptionRules } from '../base/setting.js';
import { ACCOUNT_SETTINGS } from '../base/settings.js';
import { CoreOperator, type CoreOperatorOptions, type SharedAccount } from '../operator/core-operator.js';
import { CONNECTION_RULES, requireAccountOptions } from '../queues/open-ledger.js';
import { requireKeyName } from './keys/find-signing-key.js';
import { limitSigner, type Signer } from './keys/signer.js';
import { SignedDecisions } from './operator/sign-decision.js';

/** The account, the connections and the signer of a `PayoutOperator`. */
export interface PayoutOperatorOptions extends CoreOperatorOptions {
  /**
   * Signs `retry`, `resolve` as not sent, `resume` and `adoptLedger`, as workers with a keyring require. See
   * `openSigner`. @defaultValue none: nothing is signed
   */
  readonly signer?: Signer | undefined;
  /**
   * The environment whose workers must accept what is signed, as their `PAYOUT_AUDIENCE` names it. Required with
   * `signer`. Never read it from Redis.
   */
  readonly audience?: string | undefined;
}

const RULES = {
  ...CONNECTION_RULES,
  gateway: objectWith('getStatus', 'comparePayment'),
  signer: objectWith('sign'),
  audience: ACCOUNT_SETTINGS.audience,
} as const satisfies OptionRules<PayoutOperatorOptions>;

type AnyOptions = PayoutOperatorOptions | (SharedAccount & Pick<PayoutOperatorOptions, 'signer' | 'audience'>);

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
export class PayoutOperator extends CoreOperator {
  /** @throws InvalidConfigError if an option is invalid */
  constructor(options: PayoutOperatorOptions);
  /** @internal */
  // eslint-disable-next-line @typescript-eslint/unified-signatures -- only the first is public
  constructor(options: AnyOptions);
  constructor(options: AnyOptions) {
    super(options, openDecisions(requireValid(options)));
  }
}

function requireValid(options: AnyOptions): AnyOptions {
  if (Object(options) !== options || !('account' in options)) requireAccountOptions(RULES, options);
  return options;
}

function openDecisions({ signer, audience }: AnyOptions): SignedDecisions | undefined {
  if (signer === undefined) return undefined;
  requireKeyName(signer, 'signer');
  if (audience !== undefined) return new SignedDecisions({ signer: limitSigner(signer), audience });
  const message = "is required with signer: the worker's PAYOUT_AUDIENCE (`payouts doctor` shows it)";
  throw new InvalidConfigError([{ field: 'audience', message }]);
}
