import type { Clock } from '../clock.js';
import { signText } from './ed25519.js';
import { formatIntent } from './intent.js';
import { intentOf, type IntentSignature, type SignedFields, type StoredSignature } from './signed-payout.js';
import type { SigningKey } from './signing-key-file.js';

/** How long an intent holds where nothing else was said, in ms; a worker accepts no longer time. */
export const INTENT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/** What is signed beside the fields: the JSON text of the metadata, and who asked for the payout. */
export type SignedExtras = Pick<StoredSignature, 'metadata' | 'requestedBy'>;

/** Signs the payouts of a producer. */
export class IntentSigner {
  readonly #key: SigningKey;
  readonly #platformId: number;
  readonly #clock: Pick<Clock, 'wallNow'>;

  constructor(key: SigningKey, platformId: number, clock: Pick<Clock, 'wallNow'>) {
    this.#key = key;
    this.#platformId = platformId;
    this.#clock = clock;
  }

  /**
   * Signs one payout for {@link INTENT_LIFETIME_MS} from now on.
   * @throws StatementError when a field cannot stand on one line
   */
  sign(fields: SignedFields, { metadata, requestedBy }: SignedExtras = {}): IntentSignature {
    const now = this.#clock.wallNow();
    const times = {
      issuedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + INTENT_LIFETIME_MS).toISOString(),
    };
    const text = formatIntent(intentOf(this.#platformId, fields, { ...times, metadata, requestedBy }));
    const { name, privateKey } = this.#key;
    const person = requestedBy === undefined ? {} : { requestedBy };
    return { key: name, signature: signText(text, privateKey), ...times, ...person };
  }
}
