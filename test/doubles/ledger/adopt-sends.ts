import type { Doubt, RaisedLedger, SendToAdopt } from '../../../src/ledger/adopt-ledger.js';
import { isSameTxhash } from '../../../src/base/fields.js';
import { toLine } from '../../../src/ledger/payout.js';
import type { KnownJournal } from '../../../src/ledger/sender-ledger.js';
import { UNSENT_STATES, type PayoutState } from '../../../src/ledger/states.js';
import { otherHolder, toldAs } from './finish-send.js';
import { noteJournal, type LedgerSnapshot } from './ledger-snapshot.js';
import { isTransition, knows } from './payout-book.js';

/** As adopt-send.lua. @returns the state into which the payout came */
export function adoptSend(
  all: LedgerSnapshot,
  send: SendToAdopt,
  { by, reason, doubtMs }: Doubt,
): PayoutState | undefined {
  const { payoutId, attempt, token, request, outcome } = send;
  const entry = all.book.get(payoutId);
  const attemptOf = { attempt, token };
  const { to, txhash, message } = describeAdopted(all, send, toLine(reason));
  const set = { message: to === 'in_progress' ? undefined : message };
  const doubtUntil = to === 'unknown' ? { doubtUntil: all.book.now() + doubtMs } : {};
  const put = (): PayoutState => {
    if (txhash !== undefined) {
      all.book.setTxhash(payoutId, txhash);
      all.book.note(payoutId, { told: toldAs(send, { kind: 'accepted', txhash }) });
    } else if (to === 'rejected') {
      all.book.note(payoutId, { told: toldAs(send, { kind: 'rejected', message }) });
    }
    return to;
  };
  if (entry === undefined) {
    const payout = { payoutId, ...request, state: to, attempt, requeueCount: 0 };
    all.book.add(
      { ...payout, ...(set.message === undefined ? {} : { message: set.message }) },
      { by, reason, attempt: attemptOf, ...doubtUntil },
    );
    return put();
  }
  const { state } = entry.payout;
  // As in Redis, a message of before stays with what the journal brings into progress.
  const kept = to === 'in_progress' ? {} : { set };
  if (knows(entry, attempt, token)) {
    const isLate = entry.payout.attempt === attempt && (state === 'sending' || state === 'unknown');
    if (!isLate && outcome?.kind === 'accepted' && !isSameTxhash(entry.payout.txhash, outcome.txhash)) {
      all.book.noteLatePayment(payoutId, outcome.txhash);
    }
    if (!isLate || to === 'unknown') return undefined;
    if (state === 'unknown' && to === 'rejected' && entry.overlap >= attempt) return undefined;
    all.book.move(payoutId, to, { by, reason, ...kept });
    return put();
  }
  const isOpen = state === 'sending' || state === 'unknown';
  const overlaps = isOpen || (to === 'unknown' && entry.payout.attempt > 0);
  const overlap = overlaps ? Math.max(entry.payout.attempt, attempt) : entry.overlap;
  if (state === to || !isTransition(state, to) || (isOpen && to === 'rejected')) {
    all.book.noteAttempt(payoutId, attemptOf);
    if (outcome?.kind === 'accepted') all.book.noteLatePayment(payoutId, outcome.txhash);
    const isDoubted = state === 'unknown' && to === 'unknown';
    const until = isDoubted ? Math.max(entry.doubtUntil, all.book.now() + doubtMs) : entry.doubtUntil;
    all.book.note(payoutId, { overlap, doubtUntil: until });
    return undefined;
  }
  all.book.move(payoutId, to, { by, reason, attempt: attemptOf, ...doubtUntil, ...kept });
  all.book.note(payoutId, { overlap });
  return put();
}

function describeAdopted(
  all: LedgerSnapshot,
  { payoutId, outcome }: SendToAdopt,
  reason: string,
): { to: PayoutState; txhash?: string; message: string } {
  if (outcome?.kind === 'rejected') return { to: 'rejected', message: toLine(outcome.message) };
  if (outcome === undefined) return { to: 'unknown', message: reason };
  const holder = otherHolder(all, payoutId, outcome);
  if (holder === undefined) return { to: 'in_progress', txhash: outcome.txhash, message: '' };
  return { to: 'unknown', message: `the gateway gave the txhash of payout ${holder}: ${outcome.txhash}` };
}

export function holdSendable(all: LedgerSnapshot, { by, reason, doubtMs }: Doubt): number {
  const sendable = sendableIn(all);
  const doubtUntil = all.book.now() + doubtMs;
  for (const payoutId of sendable) {
    all.book.move(payoutId, 'unknown', { by, reason, doubtUntil, set: { message: toLine(reason) } });
    all.book.note(payoutId, { overlap: all.book.get(payoutId)?.payout.attempt ?? 0 });
  }
  return sendable.length;
}

export function sendableIn(all: LedgerSnapshot): string[] {
  return UNSENT_STATES.flatMap((state) => all.book.idsIn(state));
}

/** As adopt-ledger.lua: raises the ledger above the journals' highest epoch and number of sends. */
export function adoptLedger(
  all: LedgerSnapshot,
  token: string,
  highest: { readonly epoch: number; readonly sendCount: number },
  { read, givenUp }: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
): RaisedLedger {
  const epoch = Math.max(all.lease?.epoch ?? 0, highest.epoch) + 1;
  const sendCount = Math.max(all.sendCount, highest.sendCount) + 1;
  Object.assign(all, { sendCount, last: token, awaitingAnswer: 'adopted' });
  all.lease = { owner: '', epoch, heartbeat: 0, released: false };
  for (const journal of read) noteJournal(all, journal);
  const settled = new Set([...read.map(({ journalId }) => journalId), ...givenUp]);
  all.journals = new Map([...all.journals].filter(([journalId]) => !givenUp.includes(journalId)));
  all.objections = new Map([...all.objections].filter(([journalId]) => !settled.has(journalId)));
  return { epoch, sendCount, token, objections: all.objections.size };
}
