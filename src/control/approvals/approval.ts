import type { Approval } from '../../ledger/control-record.js';
import { formatStatement, hashText } from '../intents/statement.js';

/**
 * The nine lines that are signed.
 * @throws StatementError when a value cannot stand on one line
 */
export function formatApproval(platformId: number, approval: Approval): string {
  return formatStatement('approval', approval.audience, [
    ['platformId', String(platformId)],
    ['payoutId', approval.payoutId],
    ['intent', approval.intent],
    ['decision', approval.decision],
    ['by', approval.by],
    ['at', approval.at],
    ['expiresAt', approval.expiresAt],
  ]);
}

export function hashApproval(platformId: number, approval: Approval): string {
  return hashText(formatApproval(platformId, approval));
}
