import { z } from 'zod';
import { formatStatement, hashText } from '../intents/statement.js';

/** What an operator may state under signature. */
export const ACT_NAMES = ['resend', 'resume', 'adopt'] as const;
export type ActName = (typeof ACT_NAMES)[number];

/** One decision of an operator, signed. What an act is not about is empty. */
export interface Act {
  /** The environment; undefined where a version before the line signed it. */
  readonly audience?: string | undefined;
  readonly act: ActName;
  readonly payoutId: string;
  /** The hash of the intent. */
  readonly intent: string;
  /** `resend`: the attempt of which it states that it paid nothing. */
  readonly attempt: number | undefined;
  readonly reason: string;
  /** The name of the key. */
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly expiresAt: string;
}

/** An act with its signature: base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign`. */
export interface SignedAct extends Act {
  readonly signature: string;
}

/**
 * The eleven lines that are signed.
 * @throws StatementError when a value cannot stand on one line
 */
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

/** The identity of an act: 64 hexadecimal digits. An act is used once. @throws StatementError */
export function hashAct(platformId: number, act: Act): string {
  return hashText(formatAct(platformId, act));
}

/** Far longer than any value; messages show some. */
const value = z.string().max(300);

/** A signed act as it is stored, in JSON. */
const storedAct = z.strictObject({
  audience: value.optional(),
  act: z.enum(ACT_NAMES),
  payoutId: value,
  intent: value,
  attempt: z.int().min(1).optional(),
  reason: value,
  by: value,
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  signature: z.string().max(4096),
});

/** Reads a stored act; undefined where the text is none. It proves nothing before it was verified. */
export function parseAct(text: string): SignedAct | undefined {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = storedAct.safeParse(content);
  return parsed.success ? { ...parsed.data, attempt: parsed.data.attempt } : undefined;
}

/** As {@link parseAct} reads it. */
export function serializeAct(act: SignedAct): string {
  return JSON.stringify(act);
}
