import { hashText, StatementError } from '../intents/statement.js';
import { verifySigner } from '../intents/verify-signer.js';
import type { KeyFinder } from '../keys/keyring.js';
import { formatAct, type Act, type SignedAct } from './act.js';

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
  const signer = verifySigner(text, act, { role: 'operator', lifetimeMs: ACT_LIFETIME_MS }, keyring, now);
  if (signer.kind === 'refused') return signer;
  return { kind: 'verified', actHash: hashText(text), person: signer.key.person };
}

function refuse(message: string): ActVerdict {
  return { kind: 'refused', message };
}
