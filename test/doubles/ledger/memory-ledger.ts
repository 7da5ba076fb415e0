import type { Clock } from '../../../src/base/clock.js';
import type { SignedApproval, SpendEvent } from '../../../src/ledger/control-record.js';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import {
  cameBackOlder,
  type AdoptedPayout,
  type Doubt,
  type RaisedLedger,
  type SendToAdopt,
} from '../../../src/ledger/adopt-ledger.js';
import { type Hold, type NewPayout, type Payout, toLine } from '../../../src/ledger/payout.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { PayoutState } from '../../../src/ledger/states.js';
import {
  type BeginResult,
  type BeginSend,
  type BreakerRule,
  type FinishResult,
  type ForgottenSend,
  isSameLease,
  type KnownJournal,
  type Lease,
  type LeaseView,
  type Objection,
  type ScriptRejection,
  type SendAttempt,
  type SenderLedger,
  type SenderView,
} from '../../../src/ledger/sender-ledger.js';
import type { AdoptionLedger } from '../../../src/operator/adoption.js';
import { emptyLedger, heldBy, NO_SENDER, noteJournal, pauseAccount, type LedgerSnapshot } from './ledger-snapshot.js';
import { isNewest, knows } from './payout-book.js';
import { addApproval } from './add-approval.js';
import { adoptLedger, adoptSend, holdSendable, sendableIn } from './adopt-sends.js';
import { rejectBegin, revertSend } from './begin-send.js';
import { changePayout } from './change-payout.js';
import { enqueuePayout } from './enqueue-payout.js';
import { finishSend } from './finish-send.js';
import { holdPayout } from './hold-payout.js';

export interface MemoryLedgerOptions {
  readonly clock: Pick<Clock, 'wallNow'>;
  /** Gives each ledger (the first, and one after every flush) its id, so that a run can be repeated. */
  readonly nextLedgerId: () => string;
}

/**
 * The ledger in memory, for the simulation: the same contract as the one in Redis, and each call is one indivisible step.
 * It runs neither queues nor events; whatever drives it reads `payouts()`.
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

  /** The lease as it is now. */
  get lease(): LeaseView | undefined {
    return this.#all.lease;
  }

  readSender(): Promise<SenderView> {
    const { lease, sendCount, last, lastJournalId, inFlightMs, awaitingAnswer } = this.#all;
    const { audience, pausedReason, resumeAct, adoptAct } = this.#all;
    const ledgerId = (this.#all.ledgerId ??= this.#nextLedgerId());
    return Promise.resolve({
      ledgerId,
      audience,
      lease,
      sendCount,
      last,
      lastJournalId,
      inFlightMs,
      awaitingAnswer: awaitingAnswer !== '',
      pausedReason,
      resumeAct,
      adoptAct,
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
    if (!isSameLease(lease, seen.lease) || sendCount !== seen.sendCount || last !== seen.last)
      return Promise.resolve(undefined);
    const [sending] = book.idsIn('sending');
    if (sending !== undefined && this.#all.awaitingAnswer === '') this.#all.awaitingAnswer = sending;
    this.#all.journals = new Map([...this.#all.journals].filter(([, { at }]) => at >= forgetBefore));
    if (!this.#all.journals.has(journal.journalId)) noteJournal(this.#all, journal);
    const epoch = (lease?.epoch ?? 0) + 1;
    this.#all.lease = { owner, epoch, heartbeat: 0, released: false };
    return Promise.resolve(epoch);
  }

  renewLease(lease: Lease): Promise<number | undefined> {
    const held = heldBy(this.#all, lease);
    if (held !== undefined) this.#all.lease = { ...held, heartbeat: held.heartbeat + 1 };
    return Promise.resolve(held && held.heartbeat + 1);
  }

  releaseLease(lease: Lease): Promise<void> {
    const held = heldBy(this.#all, lease);
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
    const rejection = rejectBegin(this.#all, begin);
    if (rejection !== undefined) return Promise.resolve(rejection);
    const { payoutId, attempt, token, journal, inFlightMs, spend } = begin;
    this.#all.audience ??= begin.audience;
    const at = this.#clock.wallNow();
    if (spend !== undefined) this.#all.spent = [...this.#all.spent, { kind: 'begun', spend: spend.spend, at }];
    this.#all.book.move(payoutId, 'sending', { attempt: { attempt, token } });
    Object.assign(this.#all, {
      sendCount: this.#all.sendCount + 1,
      last: token,
      awaitingAnswer: token,
      inFlightMs,
      lastJournalId: journal.journalId,
    });
    noteJournal(this.#all, journal);
    return Promise.resolve({ kind: 'begun', sendCount: this.#all.sendCount });
  }

  holdPayout(payoutId: string, attempt: number | undefined, hold: Hold): Promise<boolean> {
    return Promise.resolve(holdPayout(this.#all, payoutId, attempt, hold));
  }

  findSignedBefore(time: number): Promise<readonly string[]> {
    const now = this.#clock.wallNow();
    const held = this.inOrderOf('held').filter(([, payout]) => payout.held?.kind === 'policy');
    const found = [...this.inOrderOf('queued'), ...held].filter(([, { signed }]) => {
      return Date.parse(signed?.issuedAt ?? '') < time && Date.parse(signed?.expiresAt ?? '') > now;
    });
    return Promise.resolve(found.map(([, { payoutId }]) => payoutId));
  }

  readSpends(): Promise<readonly SpendEvent[]> {
    return Promise.resolve(this.#all.spent);
  }

  revertSend(attempt: SendAttempt, reason: string): Promise<void> {
    revertSend(this.#all, attempt, reason, this.#clock.wallNow());
    return Promise.resolve();
  }

  finishSend(send: SendAttempt, result: SentOutcome, rule: BreakerRule, doubtMs: number): Promise<FinishResult> {
    return Promise.resolve(finishSend(this.#all, { send, result, rule, doubtMs, at: this.#clock.wallNow() }));
  }

  readSending(): Promise<readonly SendAttempt[]> {
    const attempts = this.#all.book.idsIn('sending').map((payoutId) => {
      const entry = this.#all.book.get(payoutId);
      const attempt = entry?.payout.attempt ?? 0;
      return { payoutId, attempt, token: entry?.tokens[attempt]?.at(-1) ?? '' };
    });
    return Promise.resolve(attempts);
  }

  markSendsUnknown(
    lease: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    doubtMs: number,
  ): Promise<readonly string[] | undefined> {
    if (heldBy(this.#all, lease) === undefined) return Promise.resolve(undefined);
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
  enqueue(payout: NewPayout): boolean {
    return enqueuePayout(this.#all, payout);
  }

  /** Retry, resolve, cancel, or the end of a transaction. @returns why nothing was changed, or undefined when it was */
  change(change: StateChange): ScriptRejection | undefined {
    return changePayout(this.#all, change);
  }

  /** What a person signed of a payout. @returns why it is not kept, or undefined where it is */
  addApproval(approval: SignedApproval): ScriptRejection | undefined {
    return addApproval(this.#all, approval);
  }

  /** Held payouts of which someone said something since. */
  marked(limit: number): readonly string[] {
    return [...this.#all.recheck].slice(0, limit);
  }

  unmark(payoutIds: readonly string[]): void {
    this.#all.recheck = new Set([...this.#all.recheck].filter((payoutId) => !payoutIds.includes(payoutId)));
  }

  /** Payouts of a state, in the order in which they came into it, each with its place. */
  inOrderOf(state: PayoutState): readonly (readonly [place: number, payout: Payout])[] {
    const { book } = this.#all;
    return book.idsIn(state).flatMap((payoutId) => {
      const entry = book.get(payoutId);
      return entry === undefined ? [] : [[entry.seq, entry.payout] as const];
    });
  }

  /** An operator binds it to another gateway. */
  bind(audience: string): void {
    this.#all.audience = audience;
  }

  /** @returns false when the account was paused already; the first reason stays */
  pause(reason: string): boolean {
    return pauseAccount(this.#all, reason);
  }

  /** @returns false when the account was not paused */
  resume(act?: string): boolean | 'objected' {
    if (this.isObjectedTo) return 'objected';
    if (act !== undefined) this.#all.resumeAct = act;
    if (this.#all.pausedReason === undefined) return false;
    const none = { rejectionsInARow: 0, payoutRejectionsInARow: 0, unknownsInARow: 0 };
    Object.assign(this.#all, { pausedReason: undefined, ...none });
    return true;
  }

  get isObjectedTo(): boolean {
    return this.#all.objections.size > 0;
  }

  stateOf(payoutId: string): PayoutState | undefined {
    return this.#all.book.get(payoutId)?.payout.state;
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

  /** The `sender` hash alone is gone: the lease, the number and the token of the last send, and whether it awaits its response. */
  loseSender(): void {
    Object.assign(this.#all, NO_SENDER);
  }

  // What an adoption does.

  adoptSends(sends: readonly SendToAdopt[], doubt: Doubt): Promise<AdoptedPayout[]> {
    const adopted = sends.flatMap((send) => {
      const state = adoptSend(this.#all, send, doubt);
      return state === undefined ? [] : [{ payoutId: send.payoutId, state }];
    });
    return Promise.resolve(adopted);
  }

  countSendable(): Promise<number> {
    return Promise.resolve(sendableIn(this.#all).length);
  }

  holdSendable(doubt: Doubt): Promise<number> {
    return Promise.resolve(holdSendable(this.#all, doubt));
  }

  readBookmark(): Promise<string> {
    return Promise.resolve(this.#all.book.bookmark);
  }

  adoptLedger(
    highest: { readonly epoch: number; readonly sendCount: number },
    journals: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
    _actor?: unknown,
    bookmarks: readonly string[] = [],
    act?: string,
  ): Promise<RaisedLedger> {
    if (!bookmarks.every((bookmark) => this.#all.book.hasBookmark(bookmark))) return Promise.reject(cameBackOlder());
    // Not part of the snapshot: a ledger that came back older must not give a token out again.
    const token = `adoption-${(this.#adoptions += 1)}`;
    if (act !== undefined) this.#all.adoptAct = act;
    return Promise.resolve(adoptLedger(this.#all, token, highest, journals));
  }

  #knows({ payoutId, attempt, token }: SendAttempt): boolean {
    return knows(this.#all.book.get(payoutId), attempt, token);
  }
}

function inOrder<Value>(values: ReadonlyMap<string, Value>): Value[] {
  return [...values].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);
}
