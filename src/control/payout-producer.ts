import { z } from 'zod';
import { audienceOf } from '../base/audience.js';
import { ACCOUNT_SETTINGS, CONTROL_SETTINGS } from '../base/settings.js';
import { systemClock } from '../base/clock.js';
import { InvalidConfigError } from '../base/errors.js';
import { objectWith, type OptionRules } from '../base/setting.js';
import { CoreProducer, type CoreProducerOptions } from '../producer/core-producer.js';
import type { ProducerControl } from '../producer/producer-control.js';
import { CONNECTION_RULES, requireAccountOptions } from '../queues/open-ledger.js';
import { BroughtSignatures } from './intents/brought-signatures.js';
import { PayoutSigner, signAllForLedger } from './intents/intent-signer.js';
import { ReceiptVerifier } from './intents/receipt.js';
import { readKeyringFile } from './keys/keyring.js';
import { requireKeyName } from './keys/find-signing-key.js';
import { limitSigner, type Signer } from './keys/signer.js';

/** The account, the connection and the keys of a `PayoutProducer`. */
export interface PayoutProducerOptions extends CoreProducerOptions {
  /**
   * Signs every enqueued payout, as a worker with a keyring (`PAYOUT_KEYS_FILE`) requires. See `openSigner`.
   * @defaultValue payouts are not signed
   */
  readonly signer?: Signer | undefined;
  /**
   * The `PAYOUT_AUDIENCE` of the worker that pays, by default `GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID`; `payouts doctor`
   * shows it. Required with `signer` and `keysFile`. Never read it from Redis: anyone who can write there could
   * have a staging payout paid in production.
   */
  readonly audience?: string | undefined;
  /**
   * The keyring's file (`PAYOUT_KEYS_FILE`), with which {@link Payout.verified} says whether a worker signed
   * `completed` or `failed`. A payout that brings a signature which does not count is refused.
   * @defaultValue nothing is verified: Redis is believed
   */
  readonly keysFile?: string | undefined;
}

const RULES = {
  ...CONNECTION_RULES,
  checkAddresses: CONTROL_SETTINGS.checkAddresses,
  checkPaymentIds: CONTROL_SETTINGS.checkPaymentIds,
  confirm: { rule: z.boolean('must be true or false') },
  requireCurrencies: CONTROL_SETTINGS.requireCurrencies,
  signer: objectWith('sign'),
  audience: ACCOUNT_SETTINGS.audience,
  keysFile: CONTROL_SETTINGS.keysFile,
} as const satisfies OptionRules<PayoutProducerOptions>;

/**
 * Enqueues, looks up, awaits and cancels payouts for an application. It needs Redis and no secret key: the worker signs
 * and sends. Every call fails within seconds if Redis is unavailable, and works again once Redis is back.
 */
export class PayoutProducer extends CoreProducer {
  /** @throws InvalidConfigError if an option or the keyring is invalid */
  constructor(options: PayoutProducerOptions) {
    // Open control first: if it throws, nothing needs closing.
    super(options, openControl(options));
  }
}

function openControl(options: PayoutProducerOptions): ProducerControl | undefined {
  requireAccountOptions(RULES, options);
  const { signer: given, keysFile, platformId, clock = systemClock } = options;
  if (given !== undefined) requireKeyName(given, 'signer');
  const keyring = keysFile === undefined ? undefined : readKeyringFile(keysFile, 'keysFile');
  if (given === undefined && keyring === undefined) return undefined;
  const audience = requireAudience(options);
  const signer = given && new PayoutSigner({ signer: limitSigner(given), platformId, audience, clock });
  const verifier = keyring && new ReceiptVerifier(platformId, keyring.for(audience));
  const brought = keyring && new BroughtSignatures(platformId, keyring.for(audience), clock);
  return {
    check: (payout) => {
      brought?.verify(payout);
      signer?.check(payout);
    },
    signAll: async (payouts) => {
      const checked = payouts.map((payout) => brought?.verify(payout) ?? payout);
      return signer === undefined ? checked : signAllForLedger(signer, checked);
    },
    mark: (payout) => verifier?.mark(payout) ?? payout,
  };
}

function requireAudience({ platformId, audience }: Pick<PayoutProducerOptions, 'platformId' | 'audience'>): string {
  if (audience !== undefined) return audienceOf({ platformId, audience });
  const message =
    "is required with signer and keysFile: the worker's PAYOUT_AUDIENCE, by default GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID (`payouts doctor` shows it)";
  throw new InvalidConfigError([{ field: 'audience', message }]);
}
