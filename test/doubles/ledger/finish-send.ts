import { isSameTxhash } from '../../../src/base/fields.js';
import { toLine } from '../../../src/ledger/payout.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { BreakerRule, FinishResult, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import { noteResponse, noteSpent, pauseAccount, type LedgerSnapshot } from './ledger-snapshot.js';
import { knows, type Entry } from './payout-book.js';

/** What `SenderLedger.finishSend` is given. */
export interface FinishCall {
  readonly send: SendAttempt;
  readonly result: SentOutcome;
  readonly rule: BreakerRule;
  readonly doubtMs: number;
  /** Wall clock, ms. */
  readonly at: number;
}

/** As finish-send.lua. */
export function finishSend(all: LedgerSnapshot, call: FinishCall): FinishResult {
  const { send, result } = call;
  const { payoutId, attempt, token } = send;
  const entry = all.book.get(payoutId);
  if (!knows(entry, attempt, token) || entry === undefined) return { recorded: false };
  const { state } = entry.payout;
  const isTold = entry.told === toldAs(send, result) || isFormerTxhash(entry, result);
  if (result.kind !== 'unknown' && isTold) {
    noteResponse(all, token);
    return { recorded: false };
  }
  if (result.kind !== 'unknown') noteSpent(all, token, result.kind === 'accepted' ? 'accepted' : 'unpaid', call.at);
  const isNewestAttempt = entry.payout.attempt === attempt;
  const late =
    (isNewestAttempt && state === 'unknown' && result.kind !== 'unknown') ||
    ((state === 'queued' || state === 'held') && result.kind === 'accepted');
  if (!late && !(isNewestAttempt && state === 'sending')) return finishTooLate(all, entry, call);
  if (state === 'unknown' && result.kind === 'rejected' && entry.overlap >= attempt) {
    noteResponse(all, token);
    return { recorded: false };
  }
  const holder = otherHolder(all, payoutId, result);
  return holder === undefined ? finish(all, call) : finishShared(all, entry, call, holder);
}

function finish(all: LedgerSnapshot, { send, result, rule, doubtMs }: FinishCall): FinishResult {
  const { payoutId, token } = send;
  const { to, txhash, message } = describeResult(result);
  const pausedReason = countResult(all, token, result, message, rule);
  all.book.move(payoutId, to, {
    reason: message,
    ...(to === 'unknown' ? { doubtUntil: all.book.now() + doubtMs } : {}),
    set: { message: message === '' ? undefined : message },
  });
  if (txhash !== undefined) all.book.setTxhash(payoutId, txhash);
  if (result.kind !== 'unknown') {
    all.book.note(payoutId, { told: toldAs(send, result) });
    noteResponse(all, token);
  }
  return pausedReason === undefined ? { recorded: true } : { recorded: true, pausedReason };
}

/** The attempt has its outcome, or the payout has gone on without it. */
function finishTooLate(all: LedgerSnapshot, { payout }: Entry, { send, result }: FinishCall): FinishResult {
  if (result.kind !== 'unknown') noteResponse(all, send.token);
  if (result.kind !== 'accepted' || isSameTxhash(payout.txhash, result.txhash)) return { recorded: false };
  if (otherHolder(all, payout.payoutId, result) !== undefined && payout.state === 'unknown') return { recorded: false };
  all.book.noteLatePayment(payout.payoutId, result.txhash);
  return { recorded: false, latePayment: true };
}

export function otherHolder(all: LedgerSnapshot, payoutId: string, result: SentOutcome): string | undefined {
  const holder = result.kind === 'accepted' ? all.book.holderOf(result.txhash) : undefined;
  return holder === payoutId ? undefined : holder;
}

/** The gateway gave the txhash of another payout. */
function finishShared(all: LedgerSnapshot, { payout }: Entry, call: FinishCall, holder: string): FinishResult {
  const { send, result } = call;
  const txhash = result.kind === 'accepted' ? result.txhash : '';
  const message = `the gateway gave the txhash of payout ${holder}: ${txhash}`;
  if (all.book.get(holder)?.payout.state === 'in_progress') {
    const reason = `the gateway gave the same txhash to payout ${payout.payoutId}`;
    all.book.move(holder, 'unknown', { reason, set: { message: reason } });
  }
  const finished =
    payout.state === 'unknown'
      ? { recorded: true }
      : finish(all, { ...call, result: { kind: 'unknown', reason: message } });
  if (payout.state === 'unknown') all.book.alter(payout.payoutId, { message });
  all.book.note(payout.payoutId, { told: toldAs(send, result) });
  noteResponse(all, send.token);
  return finished;
}

/** @returns why the account is paused by it */
function countResult(
  all: LedgerSnapshot,
  token: string,
  result: SentOutcome,
  message: string,
  rule: BreakerRule,
): string | undefined {
  const counted = `${token} ${result.kind}`;
  if (all.counted === counted) return undefined;
  all.counted = counted;
  if (result.kind !== 'unknown') all.unknownsInARow = 0;
  if (result.kind === 'accepted') Object.assign(all, { rejectionsInARow: 0, payoutRejectionsInARow: 0 });
  if (result.kind === 'rejected' && rule.maxPayoutRejectionsInARow !== undefined) all.payoutRejectionsInARow += 1;
  else if (result.kind === 'rejected') all.rejectionsInARow += 1;
  if (result.kind === 'unknown') all.unknownsInARow += 1;
  const reason = findBreakerReason(all, result, message, rule);
  return reason !== undefined && pauseAccount(all, reason) ? reason : undefined;
}

function findBreakerReason(
  all: LedgerSnapshot,
  result: SentOutcome,
  message: string,
  rule: BreakerRule,
): string | undefined {
  const blocked = toLine(rule.blockedReason ?? '');
  if (blocked !== '') return blocked;
  if (result.kind === 'rejected' && rule.maxPayoutRejectionsInARow !== undefined) {
    const count = all.payoutRejectionsInARow;
    if (count < rule.maxPayoutRejectionsInARow) return undefined;
    return `${count} rejections in a row, for their own data: correct where these payouts come from, the last: ${message}`;
  }
  if (result.kind === 'rejected' && all.rejectionsInARow >= rule.maxRejectionsInARow) {
    return `${all.rejectionsInARow} rejections in a row, the last: ${message}`;
  }
  if (result.kind === 'unknown' && all.unknownsInARow >= rule.maxUnknownsInARow) {
    return `${all.unknownsInARow} sends in a row without a trustworthy response, the last: ${message}`;
  }
  return undefined;
}

/** An outcome that is recorded again changes nothing: what was decided since stays. */
export function toldAs({ token }: SendAttempt, result: SentOutcome): string {
  return `${token} ${result.kind} ${result.kind === 'accepted' ? result.txhash : ''}`;
}

/** The txhash that the payout has although it is unknown turned out to be of another payment. */
function isFormerTxhash({ payout }: Entry, result: SentOutcome): boolean {
  return payout.state === 'unknown' && result.kind === 'accepted' && isSameTxhash(payout.txhash, result.txhash);
}

function describeResult(result: SentOutcome): { to: PayoutState; txhash?: string; message: string } {
  switch (result.kind) {
    case 'accepted':
      return { to: 'in_progress', txhash: result.txhash, message: '' };
    case 'rejected':
      return { to: 'rejected', message: toLine(result.message) };
    case 'unknown':
      return { to: 'unknown', message: toLine(result.reason) };
  }
}
