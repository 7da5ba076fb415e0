import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import type { IntentSignature, StoredSignature } from '../../ledger/control-record.js';
import type { NewPayout } from '../../ledger/payout.js';
import { signText } from '../keys/ed25519.js';
import type { SigningKey } from '../keys/signing-key.js';
import { formatIntent, intentOf, type SignedFields } from './intent.js';
import { StatementError } from './statement.js';

export const INTENT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

export interface Signing {
  readonly platformId: number;
  /** The environment of its signatures: from the configuration, never from Redis. */
  readonly audience: string;
  readonly key: SigningKey;
  readonly clock: Pick<Clock, 'wallNow'>;
}

export class IntentSigner {
  readonly #signing: Signing;

  constructor(signing: Signing) {
    this.#signing = signing;
  }

  sign(
    fields: SignedFields,
    { metadata, requestedBy }: Pick<StoredSignature, 'metadata' | 'requestedBy'> = {},
  ): IntentSignature {
    const { key, platformId, audience, clock } = this.#signing;
    const now = clock.wallNow();
    const [issuedAt, expiresAt] = [new Date(now).toISOString(), new Date(now + INTENT_LIFETIME_MS).toISOString()];
    const times = { issuedAt, expiresAt };
    const text = formatIntent(intentOf(platformId, fields, { audience, ...times, metadata, requestedBy }));
    const person = requestedBy === undefined ? {} : { requestedBy };
    const signature = signText(text, key.privateKey);
    return { key: key.name, signature, audience, ...times, ...person };
  }
}

export class PayoutSigner {
  readonly #signer: IntentSigner;
  readonly #clock: Pick<Clock, 'wallNow'>;

  constructor(signing: Signing) {
    this.#signer = new IntentSigner(signing);
    this.#clock = signing.clock;
  }

  /** @throws InvalidInputError if the signature would expire before the payout may be sent */
  check(payout: NewPayout): void {
    checkSignable(payout, this.#clock.wallNow());
  }

  /**
   * Signs an unsigned payout. Pass the result to the ledger at once, because the metadata is the application's own
   * object.
   * @throws InvalidInputError
   */
  sign(payout: NewPayout): NewPayout {
    if (payout.signed !== undefined) return payout;
    this.check(payout);
    const { metadata, requestedBy } = payout;
    const text = metadata === undefined ? undefined : JSON.stringify(metadata);
    try {
      return { ...payout, signed: this.#signer.sign(payout, { metadata: text, requestedBy }) };
    } catch (error) {
      if (!(error instanceof StatementError)) throw error;
      const message = 'must not contain control characters, line separators or lone surrogates';
      throw new InvalidInputError([{ field: error.field, message }]);
    }
  }
}

/** Signs an unsigned payout for the ledger, which lets this process's own signature replace another. */
export function signForLedger(signer: Pick<PayoutSigner, 'sign'>, payout: NewPayout): NewPayout {
  if (payout.signed !== undefined) return payout;
  const { signed, ...rest } = signer.sign(payout);
  return { ...rest, ...(signed && { signed: { ...signed, isVerified: true } }) };
}

const LIFETIME_DAYS = INTENT_LIFETIME_MS / 86_400_000;

/** A worker never sends an expired payout. @param now - wall clock, ms */
export function checkSignable({ notBefore, signed }: NewPayout, now: number): void {
  if (notBefore === undefined || signed !== undefined || Date.parse(notBefore) < now + INTENT_LIFETIME_MS) return;
  const message = `must be less than ${LIFETIME_DAYS} days from now, because the signature ends then and the payout would never be sent: enqueue it later (got "${notBefore}")`;
  throw new InvalidInputError([{ field: 'notBefore', message }]);
}
