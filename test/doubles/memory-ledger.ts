import type { Clock } from '../../src/clock.js';
import type { AdoptedPayout, Doubt, RaisedLedger, SendToAdopt } from '../../src/ledger/adopt-ledger.js';
import type { StateChange } from '../../src/ledger/payout-ledger.js';
import { toLine, type Payout, type ValidPayout } from '../../src/ledger/payout.js';
import type { ScriptRejection } from '../../src/ledger/script-rejection.js';
import type {
  BeginResult,
  BeginSend,
  BreakerRule,
  FinishResult,
  ForgottenSend,
  KnownJournal,
  Lease,
  LeaseView,
  Objection,
  SendAttempt,
  SenderLedger,
  SenderView,
  SendResult,
} from '../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../src/ledger/states.js';
import type { AdoptionLedger } from '../../src/operator/adoption.js';
import { emptyLedger, NO_SENDER, type LedgerSnapshot } from '../proofs/simulation/support/ledger-snapshot.js';
import { isTransition, knows, type Entry } from '../proofs/simulation/support/payout-book.js';

export interface MemoryLedgerOptions {
  readonly clock: Pick<Clock, 'wallNow'>;
  /** Gives each ledger (the first, and one after every flush) its id, so that a run can be repeated. */
  readonly nextLedgerId: () => string;
}

/**
 * The ledger in memory, for the simulation: the same contract as the one in Redis, and each call is one indivisible step.
 * It runs neither queues nor events; whoever drives it looks at `payouts()`.
 */
export class MemoryLedger implements SenderLedger, AdoptionLedger {
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #nextLedgerId: () => string;
  #all: LedgerSnapshot;
  #adoptions = 0;

  constructor({ clock, nextLedgerId }: MemoryLedgerOptions) {
    this.#clock = clock;
    this.#nextLedgerId = nextLedgerId;
    this.#all = emptyLedger(clock);
  }

  // What the sender asks.

  readSender(): Promise<SenderView> {
    const { lease, sendCount, last, lastJournalId, inFlightMs, awaitingAnswer, pausedReason } = this.#all;
    const ledgerId = (this.#all.ledgerId ??= this.#nextLedgerId());
    return Promise.resolve({
      ledgerId,
      lease,
      sendCount,
      last,
      lastJournalId,
      inFlightMs,
      awaitingAnswer: awaitingAnswer !== '',
      pausedReason,
      objections: inOrder(this.#all.objections),
      journals: inOrder(this.#all.journals),
    });
  }

  acquireLease(
    owner: string,
    seen: SenderView,
    journal: KnownJournal,
    forgetBefore: number,
  ): Promise<number | undefined> {
    const { lease, sendCount, last, book } = this.#all;
    if (!sameView(lease, seen.lease) || sendCount !== seen.sendCount || last !== seen.last)
      return Promise.resolve(undefined);
    const [sending] = book.idsIn('sending');
    if (sending !== undefined && this.#all.awaitingAnswer === '') this.#all.awaitingAnswer = sending;
    this.#all.journals = new Map([...this.#all.journals].filter(([, { at }]) => at >= forgetBefore));
    if (!this.#all.journals.has(journal.journalId)) this.#noteJournal(journal);
    const epoch = (lease?.epoch ?? 0) + 1;
    this.#all.lease = { owner, epoch, heartbeat: 0, released: false };
    return Promise.resolve(epoch);
  }

  #noteJournal(journal: KnownJournal): void {
    this.#all.journals = new Map([...this.#all.journals, [journal.journalId, journal]]);
  }

  renewLease(lease: Lease): Promise<number | undefined> {
    const held = this.#heldBy(lease);
    if (held !== undefined) this.#all.lease = { ...held, heartbeat: held.heartbeat + 1 };
    return Promise.resolve(held && held.heartbeat + 1);
  }

  releaseLease(lease: Lease): Promise<void> {
    const held = this.#heldBy(lease);
    if (held !== undefined) this.#all.lease = { ...held, released: true };
    return Promise.resolve();
  }

  readPayout(payoutId: string): Promise<Payout | undefined> {
    return Promise.resolve(this.#all.book.get(payoutId)?.payout);
  }

  findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<ForgottenSend<Send>[]> {
    const forgotten = sends.filter((send) => !this.#knows(send));
    return Promise.resolve(forgotten.map((send) => ({ send, state: this.#all.book.get(send.payoutId)?.payout.state })));
  }

  beginSend(begin: BeginSend): Promise<BeginResult> {
    const refusal = this.#refuseToBegin(begin);
    if (refusal !== undefined) return Promise.resolve(refusal);
    const { payoutId, attempt, token, journal, inFlightMs } = begin;
    this.#all.book.move(payoutId, 'sending', { attempt: { attempt, token } });
    Object.assign(this.#all, {
      sendCount: this.#all.sendCount + 1,
      last: token,
      awaitingAnswer: token,
      inFlightMs,
      lastJournalId: journal.journalId,
    });
    this.#noteJournal(journal);
    return Promise.resolve({ kind: 'begun', sendCount: this.#all.sendCount });
  }

  #refuseToBegin({
    lease,
    heartbeat,
    ledgerId,
    sendCount,
    last,
    payoutId,
    attempt,
  }: BeginSend): ScriptRejection | undefined {
    const all = this.#all;
    if (all.ledgerId !== ledgerId) return { kind: 'other_ledger', ledgerId: all.ledgerId ?? '' };
    if ((this.#heldBy(lease)?.heartbeat ?? -1) < heartbeat) return { kind: 'lease_lost' };
    if (all.sendCount !== sendCount || all.last !== last)
      return { kind: 'sends_differ', sendCount: all.sendCount, last: all.last };
    const [objection] = all.objections.values();
    if (objection !== undefined) {
      return { kind: 'objected', journalId: objection.journalId, reason: objection.reason };
    }
    if (all.pausedReason !== undefined) return { kind: 'paused', reason: all.pausedReason };
    const others = this.#all.book.idsIn('sending');
    if (others.length > 0) return { kind: 'others_sending', payoutIds: others };
    const payout = all.book.get(payoutId)?.payout;
    if (payout?.state === 'queued' && payout.attempt + 1 === attempt) return undefined;
    return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
  }

  revertSend({ payoutId, attempt, token }: SendAttempt, reason: string): Promise<void> {
    const entry = this.#all.book.get(payoutId);
    if (entry?.payout.state === 'queued' && entry.payout.attempt + 1 === attempt) {
      this.#all.book.noteAttempt(payoutId, { attempt, token });
    } else if (isNewest(entry, attempt, token)) {
      const lateTxhash = entry?.payout.lateTxhash;
      const paid = lateTxhash && `not sent, because an earlier attempt was paid as ${lateTxhash}`;
      if (entry?.payout.state === 'sending' && paid !== undefined) {
        this.#all.book.move(payoutId, 'unknown', { reason: paid, set: { message: paid } });
      } else if (entry?.payout.state === 'sending') this.#all.book.move(payoutId, 'queued', { reason });
      else if (entry?.payout.state !== 'queued') return Promise.resolve();
      this.#noteAnswer(token);
    }
    return Promise.resolve();
  }

  finishSend(send: SendAttempt, result: SendResult, rule: BreakerRule, doubtMs: number): Promise<FinishResult> {
    const { payoutId, attempt, token } = send;
    const entry = this.#all.book.get(payoutId);
    if (!knows(entry, attempt, token) || entry === undefined) return Promise.resolve({ recorded: false });
    const { state } = entry.payout;
    const isTold = entry.told === toldAs(send, result) || isFormerTxhash(entry, result);
    if (result.kind !== 'unknown' && isTold) {
      this.#noteAnswer(token);
      return Promise.resolve({ recorded: false });
    }
    const isNewestAttempt = entry.payout.attempt === attempt;
    const late =
      (isNewestAttempt && state === 'unknown' && result.kind !== 'unknown') ||
      (state === 'queued' && result.kind === 'accepted');
    if (!late && !(isNewestAttempt && state === 'sending'))
      return Promise.resolve(this.#finishTooLate(entry, send, result));
    if (state === 'unknown' && result.kind === 'rejected' && entry.overlap >= attempt) {
      this.#noteAnswer(token);
      return Promise.resolve({ recorded: false });
    }
    const holder = this.#otherHolder(payoutId, result);
    if (holder !== undefined)
      return Promise.resolve(this.#finishShared(entry, send, { result, rule, doubtMs, holder }));
    return Promise.resolve(this.#finish(send, result, rule, doubtMs));
  }

  #finish(send: SendAttempt, result: SendResult, rule: BreakerRule, doubtMs: number): FinishResult {
    const { payoutId, token } = send;
    const { to, txhash, message } = describeResult(result);
    const pausedReason = this.#countResult(token, result, message, rule);
    this.#all.book.move(payoutId, to, {
      reason: message,
      ...(to === 'unknown' ? { doubtUntil: this.#clock.wallNow() + doubtMs } : {}),
      set: { message: message === '' ? undefined : message },
    });
    if (txhash !== undefined) this.#all.book.setTxhash(payoutId, txhash);
    if (result.kind !== 'unknown') {
      this.#all.book.note(payoutId, { told: toldAs(send, result) });
      this.#noteAnswer(token);
    }
    return pausedReason === undefined ? { recorded: true } : { recorded: true, pausedReason };
  }

  /** The attempt has its outcome, or the payout has gone on without it. */
  #finishTooLate({ payout }: Entry, { token }: SendAttempt, result: SendResult): FinishResult {
    if (result.kind !== 'unknown') this.#noteAnswer(token);
    if (result.kind !== 'accepted' || payout.txhash === result.txhash) return { recorded: false };
    if (this.#otherHolder(payout.payoutId, result) !== undefined && payout.state === 'unknown')
      return { recorded: false };
    this.#all.book.alter(payout.payoutId, { lateTxhash: result.txhash });
    return { recorded: false, latePayment: true };
  }

  #otherHolder(payoutId: string, result: SendResult): string | undefined {
    const holder = result.kind === 'accepted' ? this.#all.book.holderOf(result.txhash) : undefined;
    return holder === payoutId ? undefined : holder;
  }

  /** The gateway gave the txhash of another payout. */
  #finishShared(
    { payout }: Entry,
    send: SendAttempt,
    { result, rule, doubtMs, holder }: { result: SendResult; rule: BreakerRule; doubtMs: number; holder: string },
  ): FinishResult {
    const txhash = result.kind === 'accepted' ? result.txhash : '';
    const message = `the gateway gave the txhash of payout ${holder}: ${txhash}`;
    if (this.#all.book.get(holder)?.payout.state === 'in_progress') {
      const reason = `the gateway gave the same txhash to payout ${payout.payoutId}`;
      this.#all.book.move(holder, 'unknown', { reason, set: { message: reason } });
    }
    const finished =
      payout.state === 'unknown'
        ? { recorded: true }
        : this.#finish(send, { kind: 'unknown', reason: message }, rule, doubtMs);
    if (payout.state === 'unknown') this.#all.book.alter(payout.payoutId, { message });
    this.#all.book.note(payout.payoutId, { told: toldAs(send, result) });
    this.#noteAnswer(send.token);
    return finished;
  }

  /** @returns why the account is paused by it */
  #countResult(token: string, result: SendResult, message: string, rule: BreakerRule): string | undefined {
    const all = this.#all;
    const counted = `${token} ${result.kind}`;
    if (all.counted === counted) return undefined;
    all.counted = counted;
    if (result.kind !== 'unknown') all.unknownsInARow = 0;
    if (result.kind === 'accepted') all.rejectionsInARow = 0;
    if (result.kind === 'rejected') all.rejectionsInARow += 1;
    if (result.kind === 'unknown') all.unknownsInARow += 1;
    const reason = this.#findBreakerReason(result, message, rule);
    return reason !== undefined && this.pause(reason) ? reason : undefined;
  }

  #findBreakerReason(result: SendResult, message: string, rule: BreakerRule): string | undefined {
    const all = this.#all;
    const blocked = toLine(rule.blockedReason ?? '');
    if (blocked !== '') return blocked;
    if (result.kind === 'rejected' && all.rejectionsInARow >= rule.maxRejectionsInARow) {
      return `${all.rejectionsInARow} rejections in a row, the last: ${message}`;
    }
    if (result.kind === 'unknown' && all.unknownsInARow >= rule.maxUnknownsInARow) {
      return `${all.unknownsInARow} sends in a row without a trustworthy answer, the last: ${message}`;
    }
    return undefined;
  }

  readSending(): Promise<readonly SendAttempt[]> {
    const attempts = this.#all.book.idsIn('sending').map((payoutId) => {
      const entry = this.#all.book.get(payoutId);
      const attempt = entry?.payout.attempt ?? 0;
      return { payoutId, attempt, token: entry?.tokens[attempt]?.at(-1) ?? '' };
    });
    return Promise.resolve(attempts);
  }

  abandonSends(
    lease: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    doubtMs: number,
  ): Promise<readonly string[] | undefined> {
    if (this.#heldBy(lease) === undefined) return Promise.resolve(undefined);
    const left = attempts.flatMap(({ payoutId, attempt, token }) => {
      const entry = this.#all.book.get(payoutId);
      return entry?.payout.state === 'sending' && isNewest(entry, attempt, token) ? [payoutId] : [];
    });
    const doubtUntil = this.#clock.wallNow() + doubtMs;
    for (const payoutId of left) {
      this.#all.book.move(payoutId, 'unknown', { reason, doubtUntil, set: { message: toLine(reason) } });
    }
    return Promise.resolve(left);
  }

  object(objection: Objection): Promise<void> {
    const standing = this.#all.objections.get(objection.journalId);
    if (standing?.reason !== toLine(objection.reason)) {
      const noted = { ...objection, reason: toLine(objection.reason) };
      this.#all.objections = new Map([...this.#all.objections, [objection.journalId, noted]]);
    }
    return Promise.resolve();
  }

  // What applications and operators do.

  /** @returns false when there is a payout of this id already; it stays as it is */
  enqueue({ payoutId, ...input }: ValidPayout): boolean {
    if (this.#all.book.get(payoutId) !== undefined) return false;
    this.#all.book.add({ payoutId, ...input, state: 'queued', attempt: 0, round: 0 });
    return true;
  }

  /** Retry, resolve, cancel, or the end of a transaction. @returns why nothing was changed, or undefined when it was */
  change({
    payoutId,
    from,
    to,
    attempt,
    by = '',
    reason = '',
    txhash,
    fee,
    message,
  }: StateChange): ScriptRejection | undefined {
    const entry = this.#all.book.get(payoutId);
    if (entry === undefined) return { kind: 'not_found' };
    const { payout } = entry;
    if (payout.state !== from) {
      const last = payout.history.at(-1);
      const isRepeated =
        by !== '' && last?.to === to && last.by === toLine(by) && (last.reason ?? '') === toLine(reason);
      return isRepeated ? undefined : { kind: 'wrong_state', state: payout.state, attempt: payout.attempt };
    }
    if (attempt !== undefined && attempt !== payout.attempt) return { kind: 'sent_since', attempt: payout.attempt };
    const holder = txhash === undefined ? undefined : this.#all.book.holderOf(txhash);
    if (to !== 'unknown' && holder !== undefined && holder !== payoutId)
      return { kind: 'txhash_taken', payoutId: holder };
    if (to === 'queued' && payout.lateTxhash !== undefined) return { kind: 'paid_late', txhash: payout.lateTxhash };
    const doubtMs = entry.doubtUntil - this.#clock.wallNow();
    if (from === 'unknown' && to === 'queued' && doubtMs > 0) return { kind: 'in_doubt', forMs: doubtMs };
    this.#all.book.move(payoutId, to, {
      by,
      reason,
      set: {
        ...(fee === undefined ? {} : { fee }),
        ...(message === undefined ? {} : { message: toLine(message) }),
        round: payout.round + (to === 'queued' ? 1 : 0),
      },
    });
    if (txhash !== undefined && to !== 'unknown') this.#all.book.setTxhash(payoutId, txhash);
    if (txhash !== undefined && to === 'in_progress' && by !== '')
      this.#all.book.alter(payoutId, { vouchedTxhash: txhash });
    if (txhash !== undefined && to === 'unknown' && holder === payoutId) this.#all.book.freeTxhash(txhash);
    return undefined;
  }

  /** @returns false when the account was paused already; the first reason stays */
  pause(reason: string): boolean {
    if (this.#all.pausedReason !== undefined) return false;
    this.#all.pausedReason = reason;
    return true;
  }

  /** @returns false when the account was not paused */
  resume(): boolean | 'objected' {
    if (this.#all.objections.size > 0) return 'objected';
    if (this.#all.pausedReason === undefined) return false;
    Object.assign(this.#all, { pausedReason: undefined, rejectionsInARow: 0, unknownsInARow: 0 });
    return true;
  }

  /** All payouts, in the order in which they were accepted. */
  payouts(): readonly Payout[] {
    return this.#all.book.all();
  }

  // What happens to a Redis.

  snapshot(): LedgerSnapshot {
    return { ...this.#all, book: this.#all.book.copy() };
  }

  /** The ledger comes back as it was. */
  restore(snapshot: LedgerSnapshot): void {
    this.#all = { ...snapshot, book: snapshot.book.copy() };
  }

  /** Everything is gone; the ledger that is there from now on has another id. */
  flush(): void {
    this.#all = emptyLedger(this.#clock);
  }

  /** The `sender` hash alone is gone: the lease, the line of sends and what is unanswered. */
  loseSender(): void {
    Object.assign(this.#all, NO_SENDER);
  }

  // What an adoption does.

  adoptSends(sends: readonly SendToAdopt[], doubt: Doubt): Promise<AdoptedPayout[]> {
    const adopted = sends.flatMap((send) => {
      const state = this.#adoptSend(send, doubt);
      return state === undefined ? [] : [{ payoutId: send.payoutId, state }];
    });
    return Promise.resolve(adopted);
  }

  /** As adopt-send.lua. @returns the state into which the payout came */
  #adoptSend(send: SendToAdopt, { by, reason, doubtMs }: Doubt): PayoutState | undefined {
    const { payoutId, attempt, token, request, outcome } = send;
    const entry = this.#all.book.get(payoutId);
    const attemptOf = { attempt, token };
    const { to, txhash, message } = this.#describeAdopted(send, toLine(reason));
    const set = { message: to === 'in_progress' ? undefined : message };
    const doubtUntil = to === 'unknown' ? { doubtUntil: this.#clock.wallNow() + doubtMs } : {};
    const put = (): PayoutState => {
      if (txhash !== undefined) {
        this.#all.book.setTxhash(payoutId, txhash);
        this.#all.book.note(payoutId, { told: toldAs(send, { kind: 'accepted', txhash }) });
      } else if (to === 'rejected') {
        this.#all.book.note(payoutId, { told: toldAs(send, { kind: 'rejected', message }) });
      }
      return to;
    };
    if (entry === undefined) {
      const payout = { payoutId, ...request, state: to, attempt, round: 0 };
      this.#all.book.add(
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
      if (!isLate && outcome?.kind === 'accepted' && entry.payout.txhash !== outcome.txhash) {
        this.#all.book.alter(payoutId, { lateTxhash: outcome.txhash });
      }
      if (!isLate || to === 'unknown') return undefined;
      if (state === 'unknown' && to === 'rejected' && entry.overlap >= attempt) return undefined;
      this.#all.book.move(payoutId, to, { by, reason, ...kept });
      return put();
    }
    const isOpen = state === 'sending' || state === 'unknown';
    const overlaps = isOpen || (to === 'unknown' && entry.payout.attempt > 0);
    const overlap = overlaps ? Math.max(entry.payout.attempt, attempt) : entry.overlap;
    if (state === to || !isTransition(state, to) || (isOpen && to === 'rejected')) {
      this.#all.book.noteAttempt(payoutId, attemptOf);
      if (outcome?.kind === 'accepted') this.#all.book.alter(payoutId, { lateTxhash: outcome.txhash });
      const isDoubted = state === 'unknown' && to === 'unknown';
      const until = isDoubted ? Math.max(entry.doubtUntil, this.#clock.wallNow() + doubtMs) : entry.doubtUntil;
      this.#all.book.note(payoutId, { overlap, doubtUntil: until });
      return undefined;
    }
    this.#all.book.move(payoutId, to, { by, reason, attempt: attemptOf, ...doubtUntil, ...kept });
    this.#all.book.note(payoutId, { overlap });
    return put();
  }

  #describeAdopted(
    { payoutId, outcome }: SendToAdopt,
    reason: string,
  ): { to: PayoutState; txhash?: string; message: string } {
    if (outcome?.kind === 'rejected') return { to: 'rejected', message: toLine(outcome.message) };
    if (outcome === undefined) return { to: 'unknown', message: reason };
    const holder = this.#otherHolder(payoutId, outcome);
    if (holder === undefined) return { to: 'in_progress', txhash: outcome.txhash, message: '' };
    return { to: 'unknown', message: `the gateway gave the txhash of payout ${holder}: ${outcome.txhash}` };
  }

  countSendable(): Promise<number> {
    return Promise.resolve(this.#sendable().length);
  }

  holdSendable({ by, reason, doubtMs }: Doubt): Promise<number> {
    const sendable = this.#sendable();
    const doubtUntil = this.#clock.wallNow() + doubtMs;
    for (const payoutId of sendable) {
      this.#all.book.move(payoutId, 'unknown', { by, reason, doubtUntil, set: { message: toLine(reason) } });
      this.#all.book.note(payoutId, { overlap: this.#all.book.get(payoutId)?.payout.attempt ?? 0 });
    }
    return Promise.resolve(sendable.length);
  }

  #sendable(): string[] {
    return [...this.#all.book.idsIn('queued'), ...this.#all.book.idsIn('rejected')];
  }

  /** As adopt-ledger.lua: raises the ledger above the journals' highest epoch and number of sends. */
  adoptLedger(
    highest: { readonly epoch: number; readonly sendCount: number },
    { read, givenUp }: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
  ): Promise<RaisedLedger> {
    const epoch = Math.max(this.#all.lease?.epoch ?? 0, highest.epoch) + 1;
    const sendCount = Math.max(this.#all.sendCount, highest.sendCount) + 1;
    const token = `adoption-${(this.#adoptions += 1)}`;
    Object.assign(this.#all, { sendCount, last: token, awaitingAnswer: 'adopted' });
    this.#all.lease = { owner: '', epoch, heartbeat: 0, released: false };
    for (const journal of read) this.#noteJournal(journal);
    const settled = new Set([...read.map(({ journalId }) => journalId), ...givenUp]);
    this.#all.journals = new Map([...this.#all.journals].filter(([journalId]) => !givenUp.includes(journalId)));
    this.#all.objections = new Map([...this.#all.objections].filter(([journalId]) => !settled.has(journalId)));
    return Promise.resolve({ epoch, sendCount, token, objections: this.#all.objections.size });
  }

  #knows({ payoutId, attempt, token }: SendAttempt): boolean {
    return knows(this.#all.book.get(payoutId), attempt, token);
  }

  #heldBy({ owner, epoch }: Lease): LeaseView | undefined {
    const { lease } = this.#all;
    return lease?.owner === owner && lease.epoch === epoch && !lease.released ? lease : undefined;
  }

  #noteAnswer(token: string): void {
    if (this.#all.awaitingAnswer === token) this.#all.awaitingAnswer = '';
  }
}

function inOrder<Value>(values: ReadonlyMap<string, Value>): Value[] {
  return [...values].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);
}

/** An outcome that is told again changes nothing: what was decided since stays. */
function toldAs({ token }: SendAttempt, result: SendResult): string {
  return `${token} ${result.kind} ${result.kind === 'accepted' ? result.txhash : ''}`;
}

/** What the payout has as its txhash although it is unknown turned out to be of another payment. */
function isFormerTxhash({ payout }: Entry, result: SendResult): boolean {
  return payout.state === 'unknown' && result.kind === 'accepted' && payout.txhash === result.txhash;
}

function isNewest(entry: Entry | undefined, attempt: number, token: string): boolean {
  return entry?.payout.attempt === attempt && knows(entry, attempt, token);
}

function sameView(one: LeaseView | undefined, other: LeaseView | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.owner === other.owner &&
    one.epoch === other.epoch &&
    one.heartbeat === other.heartbeat &&
    one.released === other.released
  );
}

function describeResult(result: SendResult): { to: PayoutState; txhash?: string; message: string } {
  switch (result.kind) {
    case 'accepted':
      return { to: 'in_progress', txhash: result.txhash, message: '' };
    case 'rejected':
      return { to: 'rejected', message: toLine(result.message) };
    case 'unknown':
      return { to: 'unknown', message: toLine(result.reason) };
  }
}
