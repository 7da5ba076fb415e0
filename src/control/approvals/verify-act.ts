import { hashText, StatementError } from '../intents/statement.js';
import { verifySigner } from '../intents/verify-signer.js';
import type { KeyFinder } from '../keys/keyring.js';
import { formatAct, type Act, type SignedAct } from './act.js';

/** Default and longest lifetime of an act, in ms. */
export const ACT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

export type WantedAct = Pick<Act, 'act' | 'payoutId' | 'intent' | 'attempt'>;

export type ActVerdict =
  | { readonly kind: 'verified'; readonly actHash: string; readonly person: string }
  | { readonly kind: 'refused'; readonly message: string };

/** @param now - wall clock, ms */
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
  // After formatting, which rejects values of several lines that a message must not show.
  const strange = (['act', 'payoutId', 'intent', 'attempt'] as const).find((field) => act[field] !== wanted[field]);
  if (strange !== undefined) return refuse(`it names another ${strange} (${String(act[strange] ?? 'none')})`);
  const signer = verifySigner(text, act, { role: 'operator', lifetimeMs: ACT_LIFETIME_MS }, keyring, now);
  if (signer.kind === 'refused') return signer;
  return { kind: 'verified', actHash: hashText(text), person: signer.key.person };
}

function refuse(message: string): ActVerdict {
  return { kind: 'refused', message };
}
