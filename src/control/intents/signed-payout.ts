import type { Intent } from './intent.js';
import { hashText } from './statement.js';

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

/**
 * What a verifier of a send needs beside the payment and its times in ms, so that the statement can be made again without the
 * payout's record.
 */
export interface IntentProof {
  readonly signature: string;
  /** Undefined where it names none. */
  readonly audience?: string | undefined;
  /** The times as they were signed, where that is not how `toISOString` writes them. */
  readonly issuedAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  /** SHA-256, hexadecimal. */
  readonly metadataHash?: string | undefined;
  readonly requestedBy?: string | undefined;
  readonly reference?: string | undefined;
  readonly notBefore?: string | undefined;
}

/** The times of an intent, wall clock, ms. */
export interface IntentTimes {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** @param signed - a verified one: its times are times */
export function proofOf({ reference, notBefore }: SignedFields, signed: StoredSignature): IntentProof {
  const { signature, audience, metadata, requestedBy, issuedAt, expiresAt } = signed;
  const isPlain = (time: string): boolean => new Date(time).toISOString() === time;
  return {
    signature,
    ...(audience !== undefined && { audience }),
    ...(isPlain(issuedAt) ? {} : { issuedAt }),
    ...(isPlain(expiresAt) ? {} : { expiresAt }),
    ...(metadata !== undefined && { metadataHash: hashText(metadata) }),
    ...(requestedBy !== undefined && { requestedBy }),
    ...(reference !== undefined && { reference }),
    ...(notBefore !== undefined && { notBefore }),
  };
}

/** The intent of a payment that was sent, as it was signed. @param payment - its fields, as the proof lacks them */
export function intentOfProof(
  platformId: number,
  payment: SignedFields,
  { reference, notBefore, ...proof }: IntentProof,
  times: IntentTimes,
): Intent {
  const { issuedAt = toIso(times.issuedAt), expiresAt = toIso(times.expiresAt) } = proof;
  const fields = { ...payment, reference, notBefore };
  return { ...intentOf(platformId, fields, { ...proof, issuedAt, expiresAt }), metadataHash: proof.metadataHash };
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
