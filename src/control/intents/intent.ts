import type { IntentProof } from '../../journal/journal-line.js';
import type { StoredSignature } from '../../ledger/control-record.js';
import { formatStatement, hashText, StatementError, type StatementLine } from './statement.js';

export interface SignedFields {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string | undefined;
  readonly reference?: string | undefined;
  readonly notBefore?: string | undefined;
}

/** A producer's statement: one payment, for one account, within a time. Times are ISO 8601, UTC, as stored. */
export interface Intent extends SignedFields, Omit<StoredSignature, 'key' | 'signature'> {
  readonly platformId: number;
  /** SHA-256 of `metadata`, if the text is unavailable. */
  readonly metadataHash?: string | undefined;
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

export function hashIntent(intent: Intent): string {
  return hashText(formatIntent(intent));
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

/** @param signed - verified, so its times are valid */
export function proofOf({ reference, notBefore }: SignedFields, signed: StoredSignature): IntentProof {
  const { signature, audience, metadata, requestedBy, issuedAt, expiresAt } = signed;
  const isPlain = (time: string): boolean => new Date(time).toISOString() === time;
  return {
    signature,
    audience,
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
  times: { readonly issuedAt: number; readonly expiresAt: number },
): Intent {
  const toIso = (time: number): string => new Date(time).toISOString();
  const { issuedAt = toIso(times.issuedAt), expiresAt = toIso(times.expiresAt) } = proof;
  const fields = { ...payment, reference, notBefore };
  return { ...intentOf(platformId, fields, { ...proof, issuedAt, expiresAt }), metadataHash: proof.metadataHash };
}
