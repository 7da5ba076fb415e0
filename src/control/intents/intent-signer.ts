import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import type { IntentSignature, StoredSignature } from '../../ledger/control-record.js';
import type { NewPayout } from '../../ledger/payout.js';
import type { Signer } from '../keys/signer.js';
import { formatIntent, intentOf, type SignedFields } from './intent.js';
import { StatementError } from './statement.js';

export const INTENT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/** Who signs for an account. */
export interface Signing {
  readonly platformId: number;
  /** The environment of its signatures: from the configuration, never from Redis. */
  readonly audience: string;
  readonly signer: Signer;
  readonly clock: Pick<Clock, 'wallNow'>;
}

type Given = Pick<StoredSignature, 'metadata' | 'requestedBy'>;

interface PreparedText {
  readonly text: string;
  readonly toSignature: (signature: string) => IntentSignature;
}

/** What is signed, from now on for {@link INTENT_LIFETIME_MS}. @throws StatementError */
export function prepareIntent(
  fields: SignedFields,
  { metadata, requestedBy }: Given,
  { platformId, audience, clock, signer }: Omit<Signing, 'signer'> & { readonly signer: Pick<Signer, 'name'> },
): PreparedText {
  const now = clock.wallNow();
  const [issuedAt, expiresAt] = [new Date(now).toISOString(), new Date(now + INTENT_LIFETIME_MS).toISOString()];
  const times = { issuedAt, expiresAt };
  const text = formatIntent(intentOf(platformId, fields, { audience, ...times, metadata, requestedBy }));
  const person = requestedBy === undefined ? {} : { requestedBy };
  return { text, toSignature: (signature) => ({ key: signer.name, signature, audience, ...times, ...person }) };
}

export class PayoutSigner {
  readonly #signing: Signing;

  constructor(signing: Signing) {
    this.#signing = signing;
  }

  /** @throws InvalidInputError if the signature would expire before the payout may be sent */
  check(payout: NewPayout): void {
    checkSignable(payout, this.#signing.clock.wallNow());
  }

  /**
   * Signs unsigned payouts. Their metadata must not change meanwhile.
   * @throws InvalidInputError
   * @throws SignerError if one cannot be signed
   */
  async signAll(payouts: readonly NewPayout[]): Promise<NewPayout[]> {
    return Promise.all(payouts.map(async (payout) => this.#sign(payout)));
  }

  async #sign(payout: NewPayout): Promise<NewPayout> {
    if (payout.signed !== undefined) return payout;
    this.check(payout);
    try {
      const { text, toSignature } = prepareIntent(payout, givenBy(payout), this.#signing);
      return { ...payout, signed: toSignature(await this.#signing.signer.sign(text)) };
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

/** Signs unsigned payouts for the ledger, which lets this process's own signatures replace others. */
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
