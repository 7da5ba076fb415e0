import type { SignedApproval } from '../../ledger/control-record.js';
import type { Payout } from '../../ledger/payout.js';
import type { JudgedApproval } from '../../control/approvals/approvable-payout.js';

/** An approval as `--json` shows it, without its signature. `verified` only where there is a keyring. */
interface ApprovalJson extends Pick<SignedApproval, 'by' | 'decision' | 'at' | 'expiresAt'> {
  readonly verified?: boolean;
  readonly person?: string | undefined;
  readonly message?: string | undefined;
}

/**
 * The approvals of a payout; undefined where it has none.
 * @param judged - whether each counts, where there is a keyring
 */
export function toApprovalsJson(
  { approvals = [] }: Pick<Payout, 'approvals'>,
  judged?: readonly JudgedApproval[],
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
