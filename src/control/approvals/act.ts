import { z } from 'zod';
import { readJson } from '../../base/parse-json.js';
import { formatStatement, hashText, StatementError, tryFormat } from '../intents/statement.js';
import { verifySigner } from '../intents/verify-signature.js';
import type { KeyFinder } from '../keys/keyring.js';

export const ACT_NAMES = ['resend', 'resume', 'adopt'] as const;

/** Far longer than any value; messages show some. */
const value = z.string().max(300);

const storedAct = z.strictObject({
  audience: value,
  act: z.enum(ACT_NAMES),
  payoutId: value,
  intent: value,
  /** `resend`: the attempt stated as unpaid. */
  attempt: z.int().min(1).optional(),
  reason: value,
  by: value,
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign`. */
  signature: z.string().max(4096),
});

export type SignedAct = Readonly<z.output<typeof storedAct>>;

/** One signed decision of an operator. Fields that do not apply are empty. Times are ISO 8601, UTC. */
export type Act = Omit<SignedAct, 'signature'>;

export function formatAct(platformId: number, act: Act): string {
  return formatStatement('act', act.audience, [
    ['platformId', String(platformId)],
    ['act', act.act],
    ['payoutId', act.payoutId],
    ['intent', act.intent],
    ['attempt', act.attempt === undefined ? '' : String(act.attempt)],
    ['reason', act.reason],
    ['by', act.by],
    ['at', act.at],
    ['expiresAt', act.expiresAt],
  ]);
}

/** 64 hexadecimal digits. An act is used once. */
export function hashAct(platformId: number, act: Act): string {
  return hashText(formatAct(platformId, act));
}

/** Parses a stored act, unverified; undefined if the text is none. */
export function parseAct(text: string): SignedAct | undefined {
  return storedAct.safeParse(readJson(text)).data;
}

export function serializeAct(act: SignedAct): string {
  return JSON.stringify(act);
}

export const ACT_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

export type WantedAct = Pick<Act, 'act' | 'payoutId' | 'intent' | 'attempt'>;

type ActVerdict =
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
  const text = tryFormat(() => formatAct(platformId, act));
  if (text instanceof StatementError) return refuse(text.message);
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
