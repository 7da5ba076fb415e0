import { formatAct, type Act, type SignedAct } from './act.js';
import { isSignedBy, type KeyFinder } from './keyring.js';
import { hashText, parseStatementTime, StatementError } from './statement.js';
import { CLOCK_TOLERANCE_MS } from './verify-intent.js';

/** How long an act holds where nothing else was said, in ms, and at most. */
export const ACT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/** What an act has to be about to count. */
export type WantedAct = Pick<Act, 'act' | 'payoutId' | 'intent' | 'attempt'>;

export type ActVerdict =
  | { readonly kind: 'verified'; readonly actHash: string; readonly person: string }
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Verifies that an operator signed exactly what is wanted.
 * @param now - wall clock, ms
 */
export function verifyAct(
  platformId: number,
  act: SignedAct,
  wanted: WantedAct,
  keyring: KeyFinder,
  now: number,
): ActVerdict {
  let text: string;
  try {
    text = formatAct(platformId, act);
  } catch (error) {
    if (error instanceof StatementError) return refuse(error.message);
    throw error;
  }
  // After the text was made of it: a message shows nothing that is more than one line.
  const strange = (['act', 'payoutId', 'intent', 'attempt'] as const).find((field) => act[field] !== wanted[field]);
  if (strange !== undefined) return refuse(`it names another ${strange} (${String(act[strange] ?? 'none')})`);
  const key = keyring.find(act.by);
  const [at, expires] = [parseStatementTime(act.at), parseStatementTime(act.expiresAt)];
  if (key === undefined) return refuse(`the key "${act.by}" is not in the worker's keyring`);
  if (key.role !== 'operator') return refuse(`the key "${act.by}" has the role ${key.role}, not operator`);
  if (key.revoked) return refuse(`the key "${act.by}" is revoked`);
  if (!(at >= (key.notBefore ?? -Infinity) && at <= (key.notAfter ?? Infinity))) {
    return refuse(`it was signed outside the time of the key "${act.by}"`);
  }
  if (!isSignedBy(key, text, act.signature)) return refuse(`the signature of key "${act.by}" is not over it`);
  if (!(at <= now + CLOCK_TOLERANCE_MS)) return refuse(`it was signed at ${act.at}, which is in the future`);
  if (!(now < expires)) return refuse(`it expired at ${act.expiresAt}`);
  if (!(expires - at <= ACT_LIFETIME_MS)) return refuse('it is signed for too long');
  return { kind: 'verified', actHash: hashText(text), person: key.person };
}

function refuse(message: string): ActVerdict {
  return { kind: 'refused', message };
}
