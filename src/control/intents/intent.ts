import type { IntentProof } from '../../journal/journal-line.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import { formatStatement, hashText, StatementError, type StatementLine } from './statement.js';

/** A producer's statement: one payment, for one account, within a time. */
export interface Intent {
  /** Undefined in version 1, which had no such line. */
  readonly audience?: string | undefined;
  readonly platformId: number;
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string | undefined;
  readonly reference?: string | undefined;
  readonly metadata?: string | undefined;
  /** Its SHA-256, if the text is unavailable. */
  readonly metadataHash?: string | undefined;
  /** ISO 8601, UTC, as stored; so are the other times. */
  readonly notBefore?: string | undefined;
  readonly requestedBy?: string | undefined;
  readonly issuedAt: string;
  readonly expiresAt: string;
}

/** @throws StatementError also if an optional value is empty */
export function formatIntent(intent: Intent): string {
  const { metadata, metadataHash = metadata === undefined ? '' : hashText(metadata) } = intent;
  return formatStatement('intent', intent.audience, [
    ['platformId', String(intent.platformId)],
    ['payoutId', intent.payoutId],
    ['paymentId', String(intent.paymentId)],
    ['amount', intent.amount],
    ['addressTo', intent.addressTo],
    optionalLine('symbol', intent.symbol),
    optionalLine('reference', intent.reference),
    ['metadata', metadataHash],
    optionalLine('notBefore', intent.notBefore),
    optionalLine('requestedBy', intent.requestedBy),
    ['issuedAt', intent.issuedAt],
    ['expiresAt', intent.expiresAt],
  ]);
}

/** An empty value would have the bytes of an absent one and yet be sent, such as a symbol. */
function optionalLine(name: string, value: string | undefined): StatementLine {
  if (value === '') throw new StatementError(name, 'must not be empty');
  return [name, value ?? ''];
}

/** 64 hexadecimal digits, used by acts, receipts and the journal. */
export function hashIntent(intent: Intent): string {
  return hashText(formatIntent(intent));
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
interface IntentTimes {
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
