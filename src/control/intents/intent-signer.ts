import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import type { IntentSignature, StoredSignature } from '../../ledger/control-record.js';
import type { NewPayout } from '../../ledger/payout.js';
import { signText, signTextAside } from '../keys/ed25519.js';
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

type Given = Pick<StoredSignature, 'metadata' | 'requestedBy'>;

interface PreparedText {
  readonly text: string;
  readonly toSignature: (signature: string) => IntentSignature;
}

export class IntentSigner {
  readonly #signing: Signing;

  constructor(signing: Signing) {
    this.#signing = signing;
  }

  sign(fields: SignedFields, given: Given = {}): IntentSignature {
    const { text, toSignature } = this.#prepare(fields, given);
    return toSignature(signText(text, this.#signing.key.privateKey));
  }

  /** Like {@link sign}, on another thread. */
  async signAside(fields: SignedFields, given: Given = {}): Promise<IntentSignature> {
    const { text, toSignature } = this.#prepare(fields, given);
    return toSignature(await signTextAside(text, this.#signing.key.privateKey));
  }

  #prepare(fields: SignedFields, { metadata, requestedBy }: Given): PreparedText {
    const { key, platformId, audience, clock } = this.#signing;
    const now = clock.wallNow();
    const [issuedAt, expiresAt] = [new Date(now).toISOString(), new Date(now + INTENT_LIFETIME_MS).toISOString()];
    const times = { issuedAt, expiresAt };
    const text = formatIntent(intentOf(platformId, fields, { audience, ...times, metadata, requestedBy }));
    const person = requestedBy === undefined ? {} : { requestedBy };
    return { text, toSignature: (signature) => ({ key: key.name, signature, audience, ...times, ...person }) };
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
    try {
      return { ...payout, signed: this.#signer.sign(payout, givenBy(payout)) };
    } catch (error) {
      throw toInputError(error);
    }
  }

  /**
   * Signs unsigned payouts on other threads. Their metadata must not change meanwhile.
   * @throws InvalidInputError
   */
  async signAll(payouts: readonly NewPayout[]): Promise<NewPayout[]> {
    return Promise.all(payouts.map(async (payout) => this.#signAside(payout)));
  }

  async #signAside(payout: NewPayout): Promise<NewPayout> {
    if (payout.signed !== undefined) return payout;
    this.check(payout);
    try {
      return { ...payout, signed: await this.#signer.signAside(payout, givenBy(payout)) };
    } catch (error) {
      throw toInputError(error);
    }
  }
}

function givenBy({ metadata, requestedBy }: NewPayout): Given {
  return { metadata: metadata === undefined ? undefined : JSON.stringify(metadata), requestedBy };
}

function toInputError(error: unknown): unknown {
  if (!(error instanceof StatementError)) return error;
  const message = 'must not contain control characters, line separators or lone surrogates';
  return new InvalidInputError([{ field: error.field, message }]);
}

/** Signs an unsigned payout for the ledger, which lets this process's own signature replace another. */
export function signForLedger(signer: Pick<PayoutSigner, 'sign'>, payout: NewPayout): NewPayout {
  return payout.signed === undefined ? asVerified(signer.sign(payout)) : payout;
}

/** {@link signForLedger} of many, on other threads. */
export async function signAllForLedger(
  signer: Pick<PayoutSigner, 'signAll'>,
  payouts: readonly NewPayout[],
): Promise<NewPayout[]> {
  const signed = await signer.signAll(payouts);
  return signed.map((payout, index) => (payouts[index]?.signed === undefined ? asVerified(payout) : payout));
}

function asVerified({ signed, ...payout }: NewPayout): NewPayout {
  return { ...payout, ...(signed && { signed: { ...signed, isVerified: true } }) };
}

const LIFETIME_DAYS = INTENT_LIFETIME_MS / 86_400_000;

/** A worker never sends an expired payout. @param now - wall clock, ms */
export function checkSignable({ notBefore, signed }: NewPayout, now: number): void {
  if (notBefore === undefined || signed !== undefined || Date.parse(notBefore) < now + INTENT_LIFETIME_MS) return;
  const message = `must be less than ${LIFETIME_DAYS} days from now, because the signature ends then and the payout would never be sent: enqueue it later (got "${notBefore}")`;
  throw new InvalidInputError([{ field: 'notBefore', message }]);
}
