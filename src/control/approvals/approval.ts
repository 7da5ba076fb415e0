import { z } from 'zod';
import { formatStatement, hashText } from '../intents/statement.js';

/** What an approver may say of a payout. */
export const APPROVAL_DECISIONS = ['approve', 'reject'] as const;
/** What an approver says of a payout: that it may be paid, or that it is not to be. */
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

/** One person's word about exactly one intent: this address, amount and currency. */
export interface Approval {
  /** The environment; undefined where a version before the line signed it. */
  readonly audience?: string | undefined;
  readonly payoutId: string;
  /** The hash of the intent. */
  readonly intent: string;
  readonly decision: ApprovalDecision;
  /** The name of the key. */
  readonly by: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly expiresAt: string;
}

/** An approval with its signature: base64url of Ed25519, or the armoured text of `ssh-keygen -Y sign`. */
export interface SignedApproval extends Approval {
  readonly signature: string;
}

/**
 * The nine lines that are signed.
 * @throws StatementError when a value cannot stand on one line
 */
export function formatApproval(platformId: number, approval: Approval): string {
  return formatStatement('approval', approval.audience, [
    ['platformId', String(platformId)],
    ['payoutId', approval.payoutId],
    ['intent', approval.intent],
    ['decision', approval.decision],
    ['by', approval.by],
    ['at', approval.at],
    ['expiresAt', approval.expiresAt],
  ]);
}

/** The identity of an approval: 64 hexadecimal digits. @throws StatementError */
export function hashApproval(platformId: number, approval: Approval): string {
  return hashText(formatApproval(platformId, approval));
}

/** Far longer than any value; messages show some. */
const value = z.string().max(300);

/** A signed approval as it is stored and sent, in JSON. */
export const signedApprovalSchema = z.strictObject({
  audience: value.exactOptional(),
  payoutId: value,
  intent: value,
  decision: z.enum(APPROVAL_DECISIONS),
  by: value,
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  signature: z.string().max(4_096),
});
