import type { IntentProof } from '../../journal/journal-line.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import type { Intent } from './intent.js';
import { hashText } from './statement.js';

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

/** The times of an intent, wall clock, ms. */
export interface IntentTimes {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** @param signed - verified, so its times are valid */
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
