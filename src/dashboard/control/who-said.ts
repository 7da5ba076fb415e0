import type { Payout } from '../../ledger/payout.js';
import { judgeApprovals, type ApprovalView } from '../../control/approvals/approvable-payout.js';

/** What was said of a payout, by persons where that was verified. */
export interface WhoSaid {
  /** Persons, each once. */
  readonly approvedBy: readonly string[];
  readonly rejectedBy: readonly string[];
  /** Why others do not count, by the key that they name. */
  readonly refused: readonly { readonly by: string; readonly message: string }[];
  /** Keys of which nothing was verified, for want of a keyring. */
  readonly unverified: readonly string[];
}

/** @param view - undefined where the dashboard has no keyring */
export function whoSaid(payout: Payout, view: ApprovalView | undefined): WhoSaid {
  const { approvals = [] } = payout;
  if (view === undefined) {
    return { approvedBy: [], rejectedBy: [], refused: [], unverified: approvals.map(({ by }) => by) };
  }
  const judged = judgeApprovals(payout, view);
  const personsWho = (decision: string): string[] =>
    judged.flatMap(({ approval, person }) => (person === undefined || approval.decision !== decision ? [] : [person]));
  return {
    approvedBy: [...new Set(personsWho('approve'))],
    rejectedBy: [...new Set(personsWho('reject'))],
    refused: judged.flatMap(({ approval: { by }, message }) => (message === undefined ? [] : [{ by, message }])),
    unverified: [],
  };
}
