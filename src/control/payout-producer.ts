import { audienceOf } from '../base/settings.js';
import { systemClock } from '../base/clock.js';
import { InvalidConfigError } from '../base/errors.js';
import {
  PayoutProducer as Producer,
  type PayoutProducerOptions as ProducerOptions,
} from '../producer/payout-producer.js';
import type { ProducerControl } from '../producer/producer-control.js';
import { PayoutSigner } from './intents/intent-signer.js';
import { ReceiptVerifier } from './intents/receipt.js';
import { openAudience } from './keys/audience.js';
import { readKeyringFile } from './keys/keyring.js';
import { parseSigningKey, type SigningKeyOption } from './keys/signing-key.js';

/** Which account a producer enqueues for, how it reaches Redis, and how it signs. */
export interface PayoutProducerOptions extends ProducerOptions {
  /**
   * Signs every payout that is enqueued, so that a worker with a keyring (`PAYOUT_KEYS_FILE`) sends it.
   * @defaultValue payouts are not signed
   */
  readonly signingKey?: SigningKeyOption | undefined;
  /**
   * The environment whose worker is to pay, as its `PAYOUT_AUDIENCE` names it; by default that is `GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID`,
   * and `payouts doctor` shows it. Required with `signingKey` and `keysFile`. Never read it from Redis: who can write there
   * would have a payout of staging paid in production.
   */
  readonly audience?: string | undefined;
  /** Until when receipts of earlier versions count, which name no environment: ISO 8601. @defaultValue they never count */
  readonly acceptUnboundUntil?: string | undefined;
  /**
   * The file of the keyring (`PAYOUT_KEYS_FILE`): with it every payout that is returned as `completed` or `failed` says in
   * {@link Payout.verified} whether a worker of the keyring signed just that.
   * @defaultValue nothing is verified: what Redis says is believed
   */
  readonly keysFile?: string | undefined;
}

/**
 * What application code uses to pay out: enqueue, look up, wait, cancel. It needs Redis and no secret key; the worker
 * signs and sends. Every call fails within seconds when Redis is unavailable, and works again when Redis is back.
 */
export class PayoutProducer extends Producer {
  /** @throws InvalidConfigError when the options, or the keyring, cannot be used */
  constructor(options: PayoutProducerOptions) {
    // Before anything is opened that had to be closed again.
    super(options, openControl(options));
  }
}

function openControl(options: PayoutProducerOptions): ProducerControl | undefined {
  const { signingKey, keysFile, acceptUnboundUntil, platformId, clock = systemClock } = options;
  const key = signingKey && parseSigningKey(signingKey, 'signingKey');
  const keyring = keysFile === undefined ? undefined : readKeyringFile(keysFile, 'keysFile');
  if (key === undefined && keyring === undefined) return undefined;
  const audience = requireAudience(options);
  const signer = key && new PayoutSigner({ key, platformId, audience, clock });
  const verifier =
    keyring && new ReceiptVerifier(platformId, keyring.for(openAudience(audience, acceptUnboundUntil, clock)));
  return {
    check: (payout) => signer?.check(payout),
    sign: (payout) => signer?.sign(payout) ?? payout,
    mark: (payout) => verifier?.mark(payout) ?? payout,
  };
}

function requireAudience({ platformId, audience }: Pick<PayoutProducerOptions, 'platformId' | 'audience'>): string {
  if (audience !== undefined) return audienceOf({ platformId, audience });
  const message =
    "is required with signingKey and keysFile: the worker's PAYOUT_AUDIENCE, by default GATEWAY_BASE_URL#GATEWAY_PLATFORM_ID (`payouts doctor` shows it)";
  throw new InvalidConfigError([{ field: 'audience', message }]);
}
