import { keyNameField } from '../../base/fields.js';
import { TAMPERING_FAULTS, type IntentSignature } from '../../ledger/control-record.js';
import { judgeAudience } from '../keys/audience.js';
import { isSignedBy, type KeyFinder, type KeyringKey } from '../keys/keyring.js';
import { INTENT_LIFETIME_MS } from './intent-signer.js';
import { formatIntent, type Intent } from './intent.js';
import { hashText, parseStatementTime, StatementError } from './statement.js';

/** How far a signer's clock may be ahead, in ms. */
export const CLOCK_TOLERANCE_MS = 5 * 60 * 1000;

type SignatureFault =
  | (typeof TAMPERING_FAULTS)[number]
  | 'unsigned'
  | 'wrong_audience'
  | 'no_audience'
  | 'unknown_key'
  | 'revoked_key'
  | 'key_not_valid'
  | 'issued_in_future'
  | 'expired'
  | 'lifetime';

export type IntentVerdict =
  | { readonly kind: 'verified'; readonly intentHash: string; readonly signer: KeyringKey }
  | {
      readonly kind: 'refused';
      readonly fault: SignatureFault;
      readonly message: string;
      readonly isTampering: boolean;
    };

/**
 * Verifies the signature over an intent, in the order of checks of docs/control.md.
 * @param intent - rebuilt from what is about to be sent
 * @param signature - undefined if the payout has none
 * @param now - wall clock, ms
 */
export function verifyIntent(
  intent: Intent,
  signature: Pick<IntentSignature, 'key' | 'signature'> | undefined,
  keyring: KeyFinder,
  now: number,
): IntentVerdict {
  if (signature === undefined) {
    return refuse('unsigned', 'It is not signed. Enqueue it with a producer that has a signing key.');
  }
  const stranger = judgeAudience(intent.audience, keyring);
  if (stranger !== undefined) {
    const { fault, message } = stranger;
    return refuse(fault, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
  // Messages name the key, so an invalid name is not shown.
  if (!keyNameField.safeParse(signature.key).success) return refuse('fields', 'A field was altered: key.');
  const strange = (['issuedAt', 'expiresAt'] as const).find((field) => Number.isNaN(parseStatementTime(intent[field])));
  if (strange !== undefined) {
    return refuse('fields', `A field was altered: ${strange}: must be a time in UTC such as 2030-01-31T09:00:00.000Z.`);
  }
  let text: string;
  try {
    text = formatIntent(intent);
  } catch (error) {
    if (error instanceof StatementError) return refuse('fields', `A field was altered: ${error.message}.`);
    throw error;
  }
  const signer = keyring.find(signature.key);
  return (
    judgeSigner(signature.key, signer, Date.parse(intent.issuedAt)) ??
    (signer !== undefined && isSignedBy(signer, text, signature.signature)
      ? undefined
      : refuse(
          'bad_signature',
          `The signature of key "${signature.key}" is not over this payout: it, or a field, was altered.`,
        )) ??
    judgeTimes(intent, now) ?? { kind: 'verified', intentHash: hashText(text), signer: signer as KeyringKey }
  );
}

function judgeSigner(name: string, signer: KeyringKey | undefined, issuedAt: number): IntentVerdict | undefined {
  if (signer === undefined) return refuse('unknown_key', `The key "${name}" is not in the worker's keyring.`);
  if (signer.role !== 'producer') {
    return refuse('wrong_role', `The key "${name}" has the role ${signer.role}; payouts are signed by a producer.`);
  }
  if (signer.revoked) return refuse('revoked_key', `The key "${name}" is revoked.`);
  const { notBefore = -Infinity, notAfter = Infinity } = signer;
  // Not `<`: an invalid time (NaN) is not inside.
  if (!(issuedAt >= notBefore && issuedAt <= notAfter)) {
    return refuse('key_not_valid', `It was issued outside the time of the key "${name}".`);
  }
  return undefined;
}

function judgeTimes({ issuedAt, expiresAt }: Intent, now: number): IntentVerdict | undefined {
  const [issued, expires] = [Date.parse(issuedAt), Date.parse(expiresAt)];
  if (!(issued <= now + CLOCK_TOLERANCE_MS)) {
    return refuse('issued_in_future', `It was issued at ${issuedAt}, which is in the future: compare the clocks.`);
  }
  if (!(now < expires)) {
    return refuse(
      'expired',
      `It expired at ${expiresAt}. Before any attempt, enqueueing the same payout again renews its signature.`,
    );
  }
  if (!(expires - issued <= INTENT_LIFETIME_MS)) {
    return refuse('lifetime', `It is signed for longer than ${INTENT_LIFETIME_MS / 86_400_000} days.`);
  }
  return undefined;
}

function refuse(fault: SignatureFault, message: string): IntentVerdict {
  return { kind: 'refused', fault, message, isTampering: TAMPERING_FAULTS.some((known) => known === fault) };
}
