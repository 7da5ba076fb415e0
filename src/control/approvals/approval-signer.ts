import type { Approval, SignedApproval } from '../../ledger/control-record.js';
import type { ActSigner } from './act-signer.js';
import { formatApproval } from './approval.js';

/** Default lifetime of an approval, in ms, equal to a policy's default limit. */
export const APPROVAL_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Longest lifetime that is signed, in ms: no intent lasts longer. */
export const LONGEST_APPROVAL_MS = 7 * APPROVAL_LIFETIME_MS;

export type ApprovalContent = Pick<Approval, 'payoutId' | 'intent' | 'decision'>;

/**
 * The text that {@link signApproval} or another program signs.
 * @param by - the key's name and the environment
 * @param now - wall clock, ms
 */
export function makeApproval(
  content: ApprovalContent,
  { name: by, audience }: Pick<ActSigner, 'name' | 'audience'>,
  now: number,
  lifetimeMs: number,
): Approval {
  const { payoutId, intent, decision } = content;
  const times = { at: new Date(now).toISOString(), expiresAt: new Date(now + lifetimeMs).toISOString() };
  return { audience, payoutId, intent, decision, by, ...times };
}

export async function signApproval(signer: ActSigner, platformId: number, approval: Approval): Promise<SignedApproval> {
  return { ...approval, signature: await signer.sign(formatApproval(platformId, approval)) };
}
