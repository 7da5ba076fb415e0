import type { Clock } from '../../clock.js';
import type { IntentSignature, StoredSignature } from '../../ledger/control-record.js';
import { signText } from '../keys/ed25519.js';
import type { SigningKey } from '../keys/signing-key-file.js';
import { formatIntent } from './intent.js';
import { intentOf, type SignedFields } from './signed-payout.js';

/** Default and longest lifetime of an intent, in ms. */
export const INTENT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

export type SignedExtras = Pick<StoredSignature, 'metadata' | 'requestedBy'>;

export interface IntentSignerOptions {
  readonly key: SigningKey;
  readonly platformId: number;
  /** The environment whose worker must pay: from the configuration, never from Redis. */
  readonly audience: string;
  readonly clock: Pick<Clock, 'wallNow'>;
}

export class IntentSigner {
  readonly #options: IntentSignerOptions;

  constructor(options: IntentSignerOptions) {
    this.#options = options;
  }

  sign(fields: SignedFields, { metadata, requestedBy }: SignedExtras = {}): IntentSignature {
    const { key, platformId, audience, clock } = this.#options;
    const now = clock.wallNow();
    const times = {
      issuedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + INTENT_LIFETIME_MS).toISOString(),
    };
    const text = formatIntent(intentOf(platformId, fields, { audience, ...times, metadata, requestedBy }));
    const person = requestedBy === undefined ? {} : { requestedBy };
    return { key: key.name, signature: signText(text, key.privateKey), audience, ...times, ...person };
  }
}
