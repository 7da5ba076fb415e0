import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { ScriptRejection } from '../../ledger/script-rejection.js';
import type { LedgerCheck } from './ledger-check.js';
import type { SendRecovery } from './recover-sends.js';
import type { SendReport } from './send-report.js';

/** What the ledger's refusal to let an attempt begin means for its payout. Leftovers that stand in its way are resolved. */
export async function reportRefusedBegin(
  refusal: ScriptRejection,
  { check, recovery }: { readonly check: LedgerCheck; readonly recovery: SendRecovery },
): Promise<SendReport> {
  switch (refusal.kind) {
    case 'lease_lost':
      return { kind: 'lease_lost' };
    case 'paused':
      return { kind: 'paused', reason: refusal.reason };
    case 'objected':
      return { kind: 'objected', reason: refusal.reason };
    case 'other_ledger':
      return reportMismatch(check.otherLedger);
    case 'sends_differ': {
      const mismatch = check.explainDifference(refusal);
      return mismatch === undefined
        ? { kind: 'not_sent', reason: 'send counter was behind; will retry' }
        : reportMismatch(mismatch);
    }
    case 'others_sending':
      await recovery.resolveLeftovers();
      return { kind: 'not_sent', reason: `payouts were left in sending: ${refusal.payoutIds.join(', ')}` };
    case 'wrong_state':
      // Changed between the read and the begin; the next read tells.
      return refusal.state === 'queued'
        ? { kind: 'not_sent', reason: 'the payout changed' }
        : { kind: 'skipped', state: refusal.state };
    case 'not_found':
    case 'txhash_taken':
    case 'in_doubt':
    case 'sent_since':
    case 'paid_late':
      throw new Error(`begin-send refused with ${refusal.kind}, which it never should`);
  }
}

export function reportMismatch(mismatch: LedgerMismatch): Extract<SendReport, { kind: 'ledger_mismatch' }> {
  return { kind: 'ledger_mismatch', mismatch };
}
