import { ConflictError, NotVerifiedError } from '../../base/errors.js';
import type { ApprovalDecision, SignedApproval } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import { intentOf } from '../intents/intent.js';
import { verifyIntent } from '../intents/verify-intent.js';
import type { BoundKeyring, KeyringKey } from '../keys/keyring.js';
import { type ApprovedPayout, countApprovals, hasAsked, LONGEST_APPROVAL_MS } from './approval.js';

export interface ApprovablePayout {
  readonly payout: Payout;
  readonly signer: KeyringKey;
  readonly about: ApprovedPayout;
}

export interface ApprovalView {
  readonly platformId: number;
  readonly keyring: BoundKeyring;
  readonly now: number;
}

/** A stored approval, with `person` if it counts, or `message` if it does not. */
export interface ApprovalCheck {
  readonly approval: SignedApproval;
  readonly person: string | undefined;
  readonly message: string | undefined;
}

/**
 * Verifies that a producer of the keyring signed exactly the payout's recorded fields.
 * @throws ConflictError if it is neither queued nor held
 * @throws NotVerifiedError if the signature is missing or does not count
 */
export function verifyApprovable(payout: Payout, view: ApprovalView): ApprovablePayout {
  const { payoutId, state } = payout;
  if (state !== 'queued' && state !== 'held') {
    const rule = 'only a payout that is queued or held is approved or rejected';
    throw new ConflictError(`Payout ${payoutId} is ${state}: ${rule}`, ['state']);
  }
  const verdict = identify(payout, view);
  if (typeof verdict === 'string') throw new NotVerifiedError(`Payout ${payoutId} is not verified. ${verdict}`);
  return verdict;
}

/** @returns why it is not verified, otherwise what approvals of it must be about */
export function identify(payout: Payout, { platformId, keyring, now }: ApprovalView): ApprovablePayout | string {
  const { payoutId, signed } = payout;
  const verdict = verifyIntent(intentOf(platformId, payout, signed ?? UNSIGNED), signed, keyring, now);
  if (verdict.kind === 'refused') return verdict.message;
  const { signer, intentHash: intent } = verdict;
  const about = { platformId, payoutId, intent, signedBy: signer.person, requestedBy: signed?.requestedBy };
  return { payout, signer, about };
}

/** Never used: without a signature the verdict says so. */
const UNSIGNED = { issuedAt: '', expiresAt: '' };

/** @throws NotVerifiedError if the person signed or requested the payout and approves it */
export function checkApprover({ about }: ApprovablePayout, person: string, decision: ApprovalDecision): void {
  if (decision === 'reject' || !hasAsked(person, about)) return;
  const { payoutId, signedBy } = about;
  const part = person === signedBy ? 'signed' : 'requested';
  throw new NotVerifiedError(
    `Payout ${payoutId} was ${part} by ${person}, who cannot approve it: an approval is another person's`,
  );
}

/**
 * Whether one approval counts, as a worker with this keyring finds. The worker's policy limits its lifetime; here the
 * limit is the longest that is ever signed.
 */
export function verifyApproval(
  { about }: ApprovablePayout,
  approval: SignedApproval,
  { keyring, now }: ApprovalView,
): ApprovalCheck {
  const { approvedBy, rejectedBy, refused } = countApprovals(about, [approval], {
    ...{ keyring, lifetimeMs: LONGEST_APPROVAL_MS, now },
  });
  return { approval, person: rejectedBy ?? [...approvedBy][0], message: refused[0]?.message };
}

/** As {@link verifyApproval}, for all approvals of a payout. Without a verified payout, none counts. */
export function verifyApprovals(payout: Payout, view: ApprovalView): readonly ApprovalCheck[] {
  const { approvals = [] } = payout;
  if (approvals.length === 0) return [];
  const found = identify(payout, view);
  if (typeof found !== 'string') return approvals.map((approval) => verifyApproval(found, approval, view));
  const message = `the payout itself is not verified: ${found}`;
  return approvals.map((approval) => ({ approval, person: undefined, message }));
}
