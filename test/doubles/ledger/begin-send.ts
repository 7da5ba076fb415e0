import type { BeginSend, ScriptRejection, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { heldBy, noteResponse, noteSpent, type LedgerSnapshot } from './ledger-snapshot.js';
import { isNewest } from './payout-book.js';

/** As begin-send.lua. @returns undefined when the attempt may begin */
export function rejectBegin(
  all: LedgerSnapshot,
  { lease, audience, heartbeat, ledgerId, sendCount, last, payoutId, attempt, decisions }: BeginSend,
): ScriptRejection | undefined {
  if (all.ledgerId !== ledgerId) return { kind: 'other_ledger', ledgerId: all.ledgerId ?? '' };
  if (all.audience !== undefined && all.audience !== audience) return { kind: 'other_gateway', audience: all.audience };
  if ((heldBy(all, lease)?.heartbeat ?? -1) < heartbeat) return { kind: 'lease_lost' };
  if (all.sendCount !== sendCount || all.last !== last)
    return { kind: 'sends_differ', sendCount: all.sendCount, last: all.last };
  const [objection] = all.objections.values();
  if (objection !== undefined) {
    return { kind: 'objected', journalId: objection.journalId, reason: objection.reason };
  }
  if (all.pausedReason !== undefined) return { kind: 'paused', reason: all.pausedReason };
  const others = all.book.idsIn('sending');
  if (others.length > 0) return { kind: 'others_sending', payoutIds: others };
  const payout = all.book.get(payoutId)?.payout;
  const isAsJudged = (payout?.decisions ?? 0) === decisions;
  if (payout?.state === 'queued' && payout.attempt + 1 === attempt && isAsJudged) return undefined;
  return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
}

/** As revert-send.lua. */
export function revertSend(
  all: LedgerSnapshot,
  { payoutId, attempt, token }: SendAttempt,
  reason: string,
  at: number,
): void {
  const entry = all.book.get(payoutId);
  const waits = entry?.payout.state === 'queued' || entry?.payout.state === 'held';
  if (waits && entry.payout.attempt + 1 === attempt) {
    all.book.noteAttempt(payoutId, { attempt, token });
  } else if (isNewest(entry, attempt, token)) {
    noteSpent(all, token, 'unpaid', at);
    const lateTxhash = entry?.payout.lateTxhash;
    const paid = lateTxhash && `not sent, because an earlier attempt was paid as ${lateTxhash}`;
    if (entry?.payout.state === 'sending' && paid !== undefined) {
      all.book.move(payoutId, 'unknown', { reason: paid, set: { message: paid } });
    } else if (entry?.payout.state === 'sending') all.book.move(payoutId, 'queued', { reason });
    else if (!waits) return;
    noteResponse(all, token);
  }
}
