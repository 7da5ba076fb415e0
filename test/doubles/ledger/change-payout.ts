import { isSameTxhash } from '../../../src/base/fields.js';
import { toLine } from '../../../src/ledger/payout.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { ScriptRejection } from '../../../src/ledger/sender-ledger.js';
import type { LedgerSnapshot } from './ledger-snapshot.js';

/** As change-payouts.lua, for one payout. @returns why nothing was changed, or undefined when it was */
export function changePayout(
  all: LedgerSnapshot,
  { payoutId, from, to, attempt, by = '', reason = '', txhash, fee, message, act }: StateChange,
): ScriptRejection | undefined {
  const entry = all.book.get(payoutId);
  if (entry === undefined) return { kind: 'not_found' };
  const { payout } = entry;
  if (payout.state !== from) {
    const last = payout.history.at(-1);
    const isRepeated = by !== '' && last?.to === to && last.by === toLine(by) && (last.reason ?? '') === toLine(reason);
    if (isRepeated && act !== undefined) all.book.alter(payoutId, { act });
    return isRepeated ? undefined : { kind: 'wrong_state', state: payout.state, attempt: payout.attempt };
  }
  if (attempt !== undefined && attempt !== payout.attempt) return { kind: 'sent_since', attempt: payout.attempt };
  if (from === 'in_progress' && txhash !== undefined && !isSameTxhash(payout.txhash, txhash))
    return { kind: 'sent_since', attempt: payout.attempt };
  const holder = txhash === undefined ? undefined : all.book.holderOf(txhash);
  if (to === 'in_progress' && holder !== undefined && holder !== payoutId)
    return { kind: 'txhash_taken', payoutId: holder };
  if (to === 'queued' && payout.lateTxhash !== undefined) return { kind: 'paid_late', txhash: payout.lateTxhash };
  const doubtMs = entry.doubtUntil - all.book.now();
  if (from === 'unknown' && to === 'queued' && doubtMs > 0) return { kind: 'in_doubt', forMs: doubtMs };
  all.book.move(payoutId, to, {
    by,
    reason,
    set: {
      ...(fee === undefined ? {} : { fee }),
      ...(message === undefined ? {} : { message: toLine(message) }),
      ...(act === undefined ? {} : { act }),
      requeueCount: payout.requeueCount + (to === 'queued' ? 1 : 0),
    },
  });
  if (txhash !== undefined && to === 'in_progress') all.book.setTxhash(payoutId, txhash);
  if (txhash !== undefined && to === 'in_progress' && by !== '') all.book.alter(payoutId, { vouchedTxhash: txhash });
  if (txhash !== undefined && to === 'unknown' && holder === payoutId) all.book.freeTxhash(txhash);
  return undefined;
}
