import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { ScriptRejection } from '../../ledger/script-rejection.js';
import type { LedgerCheck } from './ledger-check.js';
import type { SendRecovery } from './recover-sends.js';
import type { SendReport } from './send-report.js';

/** Reports a rejected begin, and resolves leftovers that block it. */
export async function reportRefusedBegin(
  rejection: ScriptRejection,
  { check, recovery }: { readonly check: LedgerCheck; readonly recovery: SendRecovery },
): Promise<SendReport> {
  switch (rejection.kind) {
    case 'lease_lost':
      return { kind: 'lease_lost' };
    case 'paused':
      return { kind: 'paused', reason: rejection.reason };
    case 'objected':
      return { kind: 'objected', reason: rejection.reason };
    case 'other_gateway':
      return { kind: 'other_gateway', audience: rejection.audience };
    case 'other_ledger':
      return reportMismatch(check.otherLedger);
    case 'sends_differ': {
      const mismatch = check.explainDifference(rejection);
      return mismatch === undefined
        ? { kind: 'not_sent', reason: 'send counter was behind; will retry' }
        : reportMismatch(mismatch);
    }
    case 'others_sending':
      await recovery.resolveLeftovers();
      return { kind: 'not_sent', reason: `payouts were left in sending: ${rejection.payoutIds.join(', ')}` };
    case 'wrong_state':
      // The payout changed between read and begin.
      return rejection.state === 'queued'
        ? { kind: 'not_sent', reason: 'the payout changed' }
        : { kind: 'skipped', state: rejection.state };
    case 'not_found':
    case 'txhash_taken':
    case 'in_doubt':
    case 'sent_since':
    case 'paid_late':
    case 'rejected_before':
    case 'too_many_approvals':
    case 'came_back_older':
    case 'not_new':
      throw new Error(`begin-send refused with ${rejection.kind}, which it never should`);
  }
}

export function reportMismatch(mismatch: LedgerMismatch): Extract<SendReport, { kind: 'ledger_mismatch' }> {
  return { kind: 'ledger_mismatch', mismatch };
}
