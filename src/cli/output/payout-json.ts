import type { Payout } from '../../ledger/payout.js';
import type { JudgedApproval } from '../../control/approvals/approvable-payout.js';
import { toApprovalsJson } from './approvals-json.js';

/**
 * A payout as `--json` shows it: who signed it and until when, and who approved it, without the signatures.
 * @param judged - whether each approval counts, where that was verified
 */
export function toPayoutJson({ signed, approvals, ...payout }: Payout, judged?: readonly JudgedApproval[]): object {
  const approved = approvals === undefined ? payout : { ...payout, approvals: toApprovalsJson({ approvals }, judged) };
  if (signed === undefined) return approved;
  const { key: signedBy, issuedAt, expiresAt, audience } = signed;
  return { ...approved, signedBy, issuedAt, expiresAt, audience };
}
