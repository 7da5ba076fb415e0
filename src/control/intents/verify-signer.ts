import { judgeAudience } from '../keys/audience.js';
import { isSignedBy, type KeyFinder, type KeyringKey, type KeyRole } from '../keys/keyring.js';
import { parseStatementTime } from './statement.js';
import { CLOCK_TOLERANCE_MS } from './verify-intent.js';

/** A person's signed statement. Times are ISO 8601, UTC. */
interface PersonalStatement {
  readonly audience?: string | undefined;
  readonly by: string;
  readonly at: string;
  readonly expiresAt: string;
  /** base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign`. */
  readonly signature: string;
}

interface SignerRule {
  readonly role: KeyRole;
  readonly lifetimeMs: number;
}

type SignerVerdict =
  { readonly kind: 'verified'; readonly key: KeyringKey } | { readonly kind: 'refused'; readonly message: string };

/**
 * Verifies who signed a text, and that the statement is valid now.
 * @param now - wall clock, ms
 */
export function verifySigner(
  text: string,
  { audience, by, at: signedAt, expiresAt, signature }: PersonalStatement,
  { role, lifetimeMs }: SignerRule,
  keyring: KeyFinder,
  now: number,
): SignerVerdict {
  const strange = judgeAudience(audience, keyring);
  if (strange !== undefined) return refuse(strange.message);
  const key = keyring.find(by);
  const [at, expires] = [parseStatementTime(signedAt), parseStatementTime(expiresAt)];
  if (key === undefined) return refuse(`the key "${by}" is not in the worker's keyring`);
  if (key.role !== role) return refuse(`the key "${by}" has the role ${key.role}, not ${role}`);
  if (key.revoked) return refuse(`the key "${by}" is revoked`);
  // Not `<`: an invalid time (NaN) is not inside.
  if (!(at >= (key.notBefore ?? -Infinity) && at <= (key.notAfter ?? Infinity))) {
    return refuse(`it was signed outside the time of the key "${by}"`);
  }
  if (!isSignedBy(key, text, signature)) return refuse(`the signature of key "${by}" is not over it`);
  if (!(at <= now + CLOCK_TOLERANCE_MS)) return refuse(`it was signed at ${signedAt}, which is in the future`);
  if (!(now < expires)) return refuse(`it expired at ${expiresAt}`);
  if (!(expires - at <= lifetimeMs)) return refuse('it is signed for too long');
  return { kind: 'verified', key };
}

function refuse(message: string): SignerVerdict {
  return { kind: 'refused', message };
}
