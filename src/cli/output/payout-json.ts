import type { SignedApproval } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import type { ApprovalCheck } from '../../control/approvals/approvable-payout.js';

/**
 * Leaves out the signatures.
 * @param judged - whether each approval counts, if verified
 */
export function toPayoutJson({ signed, approvals, ...payout }: Payout, judged?: readonly ApprovalCheck[]): object {
  const approved = approvals === undefined ? payout : { ...payout, approvals: toApprovalsJson({ approvals }, judged) };
  if (signed === undefined) return approved;
  const { key: signedBy, issuedAt, expiresAt, audience } = signed;
  return { ...approved, signedBy, issuedAt, expiresAt, audience };
}

/** `verified` exists only with a keyring. */
interface ApprovalJson extends Pick<SignedApproval, 'by' | 'decision' | 'at' | 'expiresAt'> {
  readonly verified?: boolean;
  readonly person?: string | undefined;
  readonly message?: string | undefined;
}

export function toApprovalsJson(
  { approvals = [] }: Pick<Payout, 'approvals'>,
  judged?: readonly ApprovalCheck[],
): readonly ApprovalJson[] | undefined {
  if (approvals.length === 0) return undefined;
  if (judged === undefined) return approvals.map(pick);
  return judged.map(({ approval, person, message }) => ({
    ...pick(approval),
    ...{ verified: person !== undefined, person, message },
  }));
}

function pick({ by, decision, at, expiresAt }: SignedApproval): ApprovalJson {
  return { by, decision, at, expiresAt };
}
