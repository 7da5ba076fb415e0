import type { Intent } from './intent.js';

/** What a producer's signature adds to a payout. */
export interface IntentSignature {
  /** The name of the key in the keyring. */
  readonly key: string;
  /** base64url, 86 characters. */
  readonly signature: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly issuedAt: string;
  readonly expiresAt: string;
  /** The person on whose request the producer signed. */
  readonly requestedBy?: string | undefined;
  /** The environment for which it is signed; undefined where an earlier version signed it. */
  readonly audience?: string | undefined;
}

/** A signature as a ledger has it. */
export interface StoredSignature extends IntentSignature {
  /** The text of the payout's metadata: the JSON that was signed, to the byte. */
  readonly metadata?: string | undefined;
}

/** The fields of a payout that are signed, as they are sent. */
export interface SignedFields {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string | undefined;
  readonly reference?: string | undefined;
  readonly notBefore?: string | undefined;
}

/** The intent that a signature of these fields is over. */
export function intentOf(
  platformId: number,
  fields: SignedFields,
  signature: Omit<StoredSignature, 'key' | 'signature'>,
): Intent {
  const { payoutId, paymentId, amount, addressTo, symbol, reference, notBefore } = fields;
  const { audience, metadata, requestedBy, issuedAt, expiresAt } = signature;
  return {
    ...{ audience, platformId, payoutId, paymentId, amount, addressTo, symbol, reference, metadata, notBefore },
    ...{ requestedBy, issuedAt, expiresAt },
  };
}
