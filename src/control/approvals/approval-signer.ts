import type { Approval, SignedApproval } from '../../ledger/control-record.js';
import type { ActSigner } from './act-signer.js';
import { formatApproval } from './approval.js';

/** How long an approval holds where nothing else was said, in ms: as long as a policy lets one hold by default. */
export const APPROVAL_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** The longest time for which one is signed, in ms: no intent holds longer. */
export const LONGEST_APPROVAL_MS = 7 * APPROVAL_LIFETIME_MS;

/** What an approver says of a payout, without who says it and when. */
export type ApprovalContent = Pick<Approval, 'payoutId' | 'intent' | 'decision'>;

/**
 * Fills in who says it and when: what {@link signApproval} signs, and what another program can sign.
 * @param by - the name of the key, and the environment for which it signs
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

/**
 * Signs an approval or a rejection.
 * @throws StatementError when a value cannot stand on one line; what the signer throws
 */
export async function signApproval(signer: ActSigner, platformId: number, approval: Approval): Promise<SignedApproval> {
  return { ...approval, signature: await signer.sign(formatApproval(platformId, approval)) };
}
