import { isDeepStrictEqual } from 'node:util';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { MAX_APPROVALS } from '../../../src/control/operator/store-approval.js';
import type { ScriptRejection } from '../../../src/ledger/sender-ledger.js';
import type { LedgerSnapshot } from './ledger-snapshot.js';

/** As add-approval.lua. @returns why it is not kept, or undefined where it is */
export function addApproval(all: LedgerSnapshot, approval: SignedApproval): ScriptRejection | undefined {
  const { payoutId, by, decision } = approval;
  const payout = all.book.get(payoutId)?.payout;
  if (payout === undefined) return { kind: 'not_found' };
  const { state, attempt, approvals = [], decisions = 0 } = payout;
  if (state !== 'queued' && state !== 'held') return { kind: 'wrong_state', state, attempt };
  const before = approvals.find((one) => one.by === by);
  if (before?.decision === 'reject' && decision !== 'reject') return { kind: 'rejected_before', by };
  if (before === undefined && approvals.length >= MAX_APPROVALS) {
    return { kind: 'too_many_approvals', count: approvals.length };
  }
  all.recheck = new Set([...all.recheck, payoutId]);
  // One that is repeated says nothing new.
  if (isDeepStrictEqual(before, approval)) return undefined;
  all.book.alter(payoutId, {
    approvals: [...approvals.filter((one) => one.by !== by), approval],
    decisions: decisions + 1,
  });
  return undefined;
}
