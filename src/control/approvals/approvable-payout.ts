import { ConflictError, NotVerifiedError } from '../../base/errors.js';
import type { ApprovalDecision, SignedApproval } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import { intentOf } from '../intents/intent.js';
import { verifyIntent } from '../intents/verify-intent.js';
import type { BoundKeyring, KeyringKey } from '../keys/keyring.js';
import { type ApprovedPayout, countApprovals, hasAsked, LONGEST_APPROVAL_MS, paymentOf } from './approval.js';
import { countRejections, type Rejection } from './rejection.js';

export interface DecidablePayout {
  readonly payout: Payout;
  readonly about: ApprovedPayout;
  /** Undefined if the payout is not verified: `fault` then says why. */
  readonly signer?: KeyringKey | undefined;
  readonly fault?: string | undefined;
}

interface ApprovablePayout extends DecidablePayout {
  readonly signer: KeyringKey;
}

export interface ApprovalView {
  readonly platformId: number;
  readonly keyring: BoundKeyring;
  readonly now: number;
}

/** A stored decision, with `person` if it counts, or `message` if it does not. */
export interface ApprovalCheck {
  readonly approval: SignedApproval;
  readonly person: string | undefined;
  readonly message: string | undefined;
}

/**
 * Verifies, for an approval, that a producer of the keyring signed exactly the payout's recorded fields. A rejection is of
 * the payoutId, so it needs no valid intent.
 * @throws ConflictError if it is neither queued nor held
 * @throws NotVerifiedError if the signature is missing or does not count
 */
export function requireDecidable(payout: Payout, decision: ApprovalDecision, view: ApprovalView): DecidablePayout {
  const { payoutId, state, requestedBy } = payout;
  if (state !== 'queued' && state !== 'held') {
    const rule = 'only a payout that is queued or held is approved or rejected';
    throw new ConflictError(`Payout ${payoutId} is ${state}: ${rule}`, ['state']);
  }
  const verdict = identify(payout, view);
  if (typeof verdict !== 'string') return verdict;
  if (decision === 'approve') throw new NotVerifiedError(`Payout ${payoutId} is not verified. ${verdict}`);
  const about = {
    platformId: view.platformId,
    payoutId,
    intent: '',
    signedBy: '',
    requestedBy,
    payment: paymentOf(payout),
  };
  return { payout, about, fault: verdict };
}

/** @returns why it is not verified, otherwise what approvals of it must be about */
export function identify(payout: Payout, { platformId, keyring, now }: ApprovalView): ApprovablePayout | string {
  const { payoutId, signed } = payout;
  const verdict = verifyIntent(intentOf(platformId, payout, signed ?? UNSIGNED), signed, keyring, now);
  if (verdict.kind === 'refused') return verdict.message;
  const { signer, intentHash: intent } = verdict;
  const about = {
    platformId,
    payoutId,
    intent,
    signedBy: signer.person,
    requestedBy: signed?.requestedBy,
    payment: paymentOf(payout),
  };
  return { payout, signer, about };
}

/** Never used: without a signature the verdict says so. */
const UNSIGNED = { audience: '', issuedAt: '', expiresAt: '' };

/** @throws NotVerifiedError if the person signed or requested the payout and approves it */
export function checkApprover({ about }: DecidablePayout, person: string, decision: ApprovalDecision): void {
  if (decision !== 'approve' || !hasAsked(person, about)) return;
  const { payoutId, signedBy } = about;
  const part = person === signedBy ? 'signed' : 'requested';
  throw new NotVerifiedError(
    `Payout ${payoutId} was ${part} by ${person}, who cannot approve it: an approval is another person's`,
  );
}

/**
 * Whether each stored decision counts, as a worker with this keyring finds. The worker's policy limits the lifetime of
 * approvals; here the limit is the longest that is ever signed. Without a verified payout no approval counts, but every
 * rejection.
 */
export function verifyApprovals(payout: Payout, view: ApprovalView): readonly ApprovalCheck[] {
  const { payoutId, approvals = [] } = payout;
  if (approvals.length === 0) return [];
  const { platformId, keyring } = view;
  const found = identify(payout, view);
  const rejections = countRejections({ platformId, payoutId, approvals }, keyring);
  return approvals.map((approval): ApprovalCheck => {
    if (approval.decision === 'approve') return checkApproval(found, approval, view);
    const { signature, decision } = approval;
    const message = rejections.refused.get(signature);
    if (message !== undefined) return { approval, person: undefined, message };
    if (decision === 'unreject') return { approval, person: rejections.takers.get(signature), message: undefined };
    const isSame = (each: Rejection): boolean => each.approval?.signature === signature;
    const rejection = rejections.standing.find(isSame);
    if (rejection === undefined) return { approval, person: undefined, message: 'the person took it back' };
    const { person } = rejection;
    return { approval, person, message: person === undefined ? UNKNOWN_KEY : undefined };
  });
}

const UNKNOWN_KEY = 'its key is not in the keyring; a worker holds the payout until it can tell';

function checkApproval(
  found: ApprovablePayout | string,
  approval: SignedApproval,
  { keyring, now }: ApprovalView,
): ApprovalCheck {
  if (typeof found === 'string') {
    return { approval, person: undefined, message: `the payout itself is not verified: ${found}` };
  }
  const rule = { keyring, lifetimeMs: LONGEST_APPROVAL_MS, now };
  const { approvedBy, refused } = countApprovals(found.about, [approval], rule);
  return { approval, person: [...approvedBy][0], message: refused[0]?.message };
}
