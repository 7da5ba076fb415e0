import { checkAudience } from '../keys/audience.js';
import { isSignedBy, type KeyFinder, type KeyringKey, type KeyRole } from '../keys/keyring.js';
import { parseStatementTime } from './statement.js';

/** The checks that the signatures of intents, acts, approvals and receipts share. */

/** How far a signer's clock may be ahead, in ms. */
export const CLOCK_TOLERANCE_MS = 5 * 60 * 1000;

export interface SignatureFault {
  readonly fault:
    | 'wrong_audience'
    | 'unknown_key'
    | 'wrong_role'
    | 'revoked_key'
    | 'key_not_valid'
    | 'bad_signature'
    | 'issued_in_future'
    | 'expired'
    | 'lifetime';
  readonly message: string;
}

interface Signed {
  readonly audience: string;
  readonly key: string;
  readonly at: string;
  readonly signature: string;
}

/**
 * @param subject - what the text is, for messages
 * @returns the key that signed the text, or why its signature does not count
 */
export function checkSignature(
  text: string,
  { audience, key: name, at, signature }: Signed,
  role: KeyRole,
  keyring: KeyFinder,
  subject = 'it',
): { readonly key: KeyringKey } | SignatureFault {
  const strange = checkAudience(audience, keyring);
  if (strange !== undefined) return strange;
  const key = keyring.find(name);
  if (key === undefined) return { fault: 'unknown_key', message: `the key "${name}" is not in the worker's keyring` };
  const { notBefore = -Infinity, notAfter = Infinity } = key;
  if (key.role !== role) {
    return { fault: 'wrong_role', message: `the key "${name}" has the role ${key.role}, not ${role}` };
  }
  if (key.revoked) return { fault: 'revoked_key', message: `the key "${name}" is revoked` };
  const signedAt = parseStatementTime(at);
  // Not `<`: an invalid time (NaN) is not inside.
  if (!(signedAt >= notBefore && signedAt <= notAfter)) {
    return { fault: 'key_not_valid', message: `it was issued outside the time of the key "${name}"` };
  }
  if (isSignedBy(key, text, signature)) return { key };
  return { fault: 'bad_signature', message: `the signature of key "${name}" is not over ${subject}` };
}

/** @param now - wall clock, ms */
export function checkTimes(at: string, expiresAt: string, lifetimeMs: number, now: number): SignatureFault | undefined {
  const [signed, expires] = [parseStatementTime(at), parseStatementTime(expiresAt)];
  if (!(signed <= now + CLOCK_TOLERANCE_MS)) {
    return { fault: 'issued_in_future', message: `it was issued at ${at}, which is in the future` };
  }
  if (!(now < expires)) return { fault: 'expired', message: `it expired at ${expiresAt}` };
  return expires - signed <= lifetimeMs ? undefined : { fault: 'lifetime', message: 'it is signed for too long' };
}

interface PersonalStatement extends Omit<Signed, 'key'> {
  readonly by: string;
  readonly expiresAt: string;
}

/**
 * Verifies who signed a text, and that the statement is valid now.
 * @param now - wall clock, ms
 */
export function verifySigner(
  text: string,
  { by: key, ...statement }: PersonalStatement,
  { role, lifetimeMs }: { readonly role: KeyRole; readonly lifetimeMs: number },
  keyring: KeyFinder,
  now: number,
): { readonly kind: 'verified'; readonly key: KeyringKey } | { readonly kind: 'refused'; readonly message: string } {
  const signer = checkSignature(text, { key, ...statement }, role, keyring);
  const fault = 'fault' in signer ? signer : checkTimes(statement.at, statement.expiresAt, lifetimeMs, now);
  if (fault !== undefined) return { kind: 'refused', message: fault.message };
  return { kind: 'verified', key: (signer as { readonly key: KeyringKey }).key };
}
