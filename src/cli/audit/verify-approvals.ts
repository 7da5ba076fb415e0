import { hashApproval, type SignedApproval } from '../../control/approval.js';
import { countApprovals, type ApprovalCount } from '../../control/count-approvals.js';
import type { Keyring } from '../../control/keyring.js';
import { StatementError } from '../../control/statement.js';
import type { JournalEntry } from '../../journal/journal-line.js';
import type { Payout } from '../../ledger/payout.js';
import type { Finding } from './finding.js';
import { keysOfThen } from './keys-of-then.js';
import type { SignatureContext } from './verify-send.js';

const REMOVED =
  'Somebody has removed or altered it in Redis. Ask the persons of the group whether they approved this payment.';
const NOT_COUNTED = 'Ask that person, and compare the keyring with the one of the worker: it counted the approval.';

/** Verifies the approvals that counted for a send, as the journal names them, against those of the payout's record. */
export function verifyApprovals(
  send: JournalEntry,
  payout: Payout,
  { platformId, keyring }: SignatureContext,
): Finding[] {
  const { judged, signed, payoutId, attempt } = send;
  if (judged?.approvals === undefined || signed === undefined) return [];
  const byHash = new Map(approvalsOf(payout, platformId));
  const finding = (message: string, action: string): Finding => ({
    payoutId,
    attempt,
    kind: 'approval',
    message,
    action,
  });
  const there = judged.approvals.flatMap((hash) => byHash.get(hash) ?? []);
  const missing = judged.approvals.filter((hash) => !byHash.has(hash));
  const count = (approvals: readonly SignedApproval[], keys: Keyring, now: number): ApprovalCount => {
    const signedBy = keys.find(signed.key)?.person ?? '';
    const about = { platformId, payoutId, intent: signed.intent, signedBy, requestedBy: payout.requestedBy };
    return countApprovals(about, approvals, { keyring: keysOfThen(keys), lifetimeMs: Infinity, now });
  };
  const refused = keyring === undefined ? [] : count(there, keyring, send.at).refused;
  // A key that approved again for a later attempt has one approval in the record, the newer one.
  const replaced = (payout.approvals ?? []).filter((approval) => {
    const at = Date.parse(approval.at);
    return at > send.at && keyring !== undefined && count([approval], keyring, at).approvedBy.size > 0;
  }).length;
  return [
    ...missing
      .slice(replaced)
      .map((hash) => finding(`an approval that counted (${hash}) is not in its record`, REMOVED)),
    ...refused.map(({ by, message }) => finding(`the approval of key "${by}" does not count: ${message}`, NOT_COUNTED)),
  ];
}

/** The approvals of a payout that can be hashed, by their hashes. */
export function approvalsOf(
  { approvals = [] }: Payout,
  platformId: number,
): [hash: string, approval: SignedApproval][] {
  return approvals.flatMap((approval): [string, SignedApproval][] => {
    try {
      return [[hashApproval(platformId, approval), approval]];
    } catch (error) {
      if (error instanceof StatementError) return [];
      throw error;
    }
  });
}
