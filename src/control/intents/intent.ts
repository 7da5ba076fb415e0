import { formatStatement, hashText, StatementError, type StatementLine } from './statement.js';

/** What a producer signs: one payment, for one account, within a time. */
export interface Intent {
  /** The environment; undefined where a version before the line signed it. */
  readonly audience?: string | undefined;
  readonly platformId: number;
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string | undefined;
  readonly reference?: string | undefined;
  /** The JSON text, as it is stored. */
  readonly metadata?: string | undefined;
  /** Its SHA-256, where the text is not at hand. */
  readonly metadataHash?: string | undefined;
  /** ISO 8601, UTC, as it is stored; so are the other times. */
  readonly notBefore?: string | undefined;
  /** The person on whose request the producer signs, where it names one. */
  readonly requestedBy?: string | undefined;
  readonly issuedAt: string;
  readonly expiresAt: string;
}

/**
 * The 14 lines that are signed.
 * @throws StatementError when a value cannot stand on one line, or an optional one is there and empty
 */
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

/** An empty value would have the bytes of an absent one, and yet be sent: a symbol, for one. */
function optionalLine(name: string, value: string | undefined): StatementLine {
  if (value === '') throw new StatementError(name, 'must not be empty');
  return [name, value ?? ''];
}

/**
 * The identity of an intent: 64 hexadecimal digits, which acts, receipts and the journal name.
 * @throws StatementError
 */
export function hashIntent(intent: Intent): string {
  return hashText(formatIntent(intent));
}
