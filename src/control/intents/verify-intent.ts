import { keyNameField } from '../../base/fields.js';
import { TAMPERING_FAULTS, type IntentSignature } from '../../ledger/control-record.js';
import { checkAudience } from '../keys/audience.js';
import type { KeyFinder, KeyringKey } from '../keys/keyring.js';
import { INTENT_LIFETIME_MS } from './intent-signer.js';
import { formatIntent, type Intent } from './intent.js';
import { hashText, parseStatementTime, StatementError, tryFormat } from './statement.js';
import { checkSignature, checkTimes, type SignatureFault } from './verify-signature.js';

export { CLOCK_TOLERANCE_MS } from './verify-signature.js';

type IntentFault = SignatureFault['fault'] | 'unsigned' | 'fields';

export type IntentVerdict =
  | { readonly kind: 'verified'; readonly intentHash: string; readonly signer: KeyringKey }
  | {
      readonly kind: 'refused';
      readonly fault: IntentFault;
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
  const { audience, issuedAt: at, expiresAt } = intent;
  const strange = checkAudience(audience, keyring);
  if (strange !== undefined) return refuse(strange.fault, toSentence(strange.message));
  // Messages name the key, so an invalid name is not shown.
  if (!keyNameField.safeParse(signature.key).success) return refuse('fields', 'A field was altered: key.');
  const wrong = (['issuedAt', 'expiresAt'] as const).find((field) => Number.isNaN(parseStatementTime(intent[field])));
  if (wrong !== undefined) {
    return refuse('fields', `A field was altered: ${wrong}: must be a time in UTC such as 2030-01-31T09:00:00.000Z.`);
  }
  const text = tryFormat(() => formatIntent(intent));
  if (text instanceof StatementError) return refuse('fields', `A field was altered: ${text.message}.`);
  const found = checkSignature(text, { audience, at, ...signature }, 'producer', keyring, SUBJECT);
  const fault = 'fault' in found ? found : checkTimes(at, expiresAt, INTENT_LIFETIME_MS, now);
  if (fault !== undefined) return refuse(fault.fault, toSentence(`${fault.message}${ADVICE[fault.fault] ?? ''}`));
  return { kind: 'verified', intentHash: hashText(text), signer: (found as { readonly key: KeyringKey }).key };
}

const SUBJECT = 'this payout: it, or a field, was altered';
const ADVICE: Partial<Record<IntentFault, string>> = {
  issued_in_future: ': compare the clocks',
  expired: '. Before any attempt, enqueueing the same payout again renews its signature',
};

function toSentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}

function refuse(fault: IntentFault, message: string): IntentVerdict {
  return { kind: 'refused', fault, message, isTampering: TAMPERING_FAULTS.some((known) => known === fault) };
}
