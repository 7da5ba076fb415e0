import type { Clock } from '../../src/clock.js';
import type { ForgottenSend } from '../../src/ledger/adopt-ledger.js';
import type { StateChange } from '../../src/ledger/payout-ledger.js';
import { toLine, type Payout, type ValidPayout } from '../../src/ledger/payout.js';
import type { Refusal } from '../../src/ledger/refusal.js';
import type {
  BeginResult,
  BeginSend,
  BreakerRule,
  FinishResult,
  Lease,
  LeaseView,
  SendAttempt,
  SenderLedger,
  SenderView,
  SendResult,
} from '../../src/ledger/sender-ledger.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { JOURNAL_WITNESS } from '../../src/ledger/witness.js';
import { emptyLedger, type LedgerSnapshot } from './support/ledger-snapshot.js';
import { isTransition } from './support/payout-book.js';

export interface MemoryLedgerOptions {
  readonly clock: Pick<Clock, 'wallNow'>;
  /** Gives each ledger (the first, and one after every flush) its id, so that a run can be repeated. */
  readonly nextLedgerId: () => string;
}

/** A send that a journal witnesses. */
export interface WitnessedSend extends SendAttempt {
  readonly payout: ValidPayout;
}

/**
 * The ledger in memory, for the simulation: the same contract as the one in Redis, and each call is one indivisible step.
 * It runs neither queues nor events; whoever drives it looks at `payouts()`.
 */
export class MemoryLedger implements SenderLedger {
  readonly #clock: Pick<Clock, 'wallNow'>;
  readonly #nextLedgerId: () => string;
  #all: LedgerSnapshot;

  constructor({ clock, nextLedgerId }: MemoryLedgerOptions) {
    this.#clock = clock;
    this.#nextLedgerId = nextLedgerId;
    this.#all = emptyLedger(clock);
  }

  // What the sender asks.

  readSender(): Promise<SenderView> {
    const { lease, sends, unanswered, pausedReason } = this.#all;
    const ledgerId = (this.#all.ledgerId ??= this.#nextLedgerId());
    return Promise.resolve({ ledgerId, lease, sends, unanswered: unanswered !== '', pausedReason });
  }

  acquireLease(owner: string, seen: LeaseView | undefined): Promise<number | undefined> {
    const { lease } = this.#all;
    if (!sameView(lease, seen)) return Promise.resolve(undefined);
    const sending = this.#all.book.idsIn('sending').flatMap((payoutId) => this.#all.book.get(payoutId) ?? []);
    const last = sending.at(-1)?.payout;
    if (last !== undefined) this.#all.unanswered = `${last.payoutId} ${last.attempt}`;
    const epoch = Math.max(lease?.epoch ?? 0, ...sending.map((entry) => entry.epoch ?? 0)) + 1;
    this.#all.lease = { owner, epoch, beat: 0, released: false };
    return Promise.resolve(epoch);
  }

  beatLease(lease: Lease): Promise<boolean> {
    const held = this.#heldBy(lease);
    if (held !== undefined) this.#all.lease = { ...held, beat: held.beat + 1 };
    return Promise.resolve(held !== undefined);
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
    const { payoutId, attempt, lease } = begin;
    this.#all.book.move(payoutId, 'sending', { epoch: lease.epoch, set: { attempt } });
    this.#all.sends += 1;
    this.#all.unanswered = `${payoutId} ${attempt}`;
    return Promise.resolve({ kind: 'begun', sends: this.#all.sends });
  }

  #refuseToBegin({ lease, ledgerId, sends, payoutId, attempt }: BeginSend): Refusal | undefined {
    const all = this.#all;
    if (all.ledgerId !== ledgerId) return { kind: 'other_ledger', ledgerId: all.ledgerId ?? '' };
    if (this.#heldBy(lease) === undefined) return { kind: 'lease_lost' };
    if (all.sends !== sends) return { kind: 'sends_differ', sends: all.sends };
    if (all.pausedReason !== undefined) return { kind: 'paused', reason: all.pausedReason };
    const others = this.#all.book.idsIn('sending');
    if (others.length > 0) return { kind: 'others_sending', payoutIds: others };
    const payout = all.book.get(payoutId)?.payout;
    if (payout?.state === 'queued' && payout.attempt + 1 === attempt) return undefined;
    return { kind: 'wrong_state', state: payout?.state, attempt: payout?.attempt ?? 0 };
  }

  revertSend({ payoutId, attempt, epoch }: SendAttempt, reason: string): Promise<void> {
    const entry = this.#all.book.get(payoutId);
    if (entry?.payout.state === 'queued' && entry.payout.attempt + 1 === attempt) {
      this.#all.book.setAttempt(payoutId, attempt, epoch);
    } else if (entry?.payout.state === 'sending' && entry.payout.attempt === attempt && entry.epoch === epoch) {
      this.#all.book.move(payoutId, 'queued', { reason });
      this.#noteAnswer(payoutId, attempt);
    }
    return Promise.resolve();
  }

  finishSend(send: SendAttempt, result: SendResult, rule: BreakerRule): Promise<FinishResult> {
    const { payoutId, attempt } = send;
    const entry = this.#all.book.get(payoutId);
    if (entry?.payout.attempt !== attempt || entry.epoch !== send.epoch) return Promise.resolve({ recorded: false });
    const { state } = entry.payout;
    const late =
      (state === 'unknown' && result.kind !== 'unknown') || (state === 'queued' && result.kind === 'accepted');
    if (entry.payout.state !== 'sending' && !late) return Promise.resolve({ recorded: false });

    const { to, txhash, message } = describeResult(result);
    this.#all.book.move(payoutId, to, { reason: message, set: { message: message === '' ? undefined : message } });
    if (txhash !== undefined) this.#all.book.setTxhash(payoutId, txhash);
    if (result.kind !== 'unknown') this.#noteAnswer(payoutId, attempt);
    const reason = this.#breakerTrips(result, message, rule);
    if (reason === undefined || !this.pause(reason, 'worker')) return Promise.resolve({ recorded: true });
    return Promise.resolve({ recorded: true, pausedReason: reason });
  }

  #breakerTrips(result: SendResult, message: string, rule: BreakerRule): string | undefined {
    const all = this.#all;
    if (result.kind !== 'unknown') all.unknownsInARow = 0;
    if (result.kind === 'accepted') all.rejectionsInARow = 0;
    if (result.kind === 'rejected') all.rejectionsInARow += 1;
    if (result.kind === 'unknown') all.unknownsInARow += 1;
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

  recoverSends(lease: Lease, reason: string): Promise<readonly string[] | undefined> {
    if (this.#heldBy(lease) === undefined) return Promise.resolve(undefined);
    const left = this.#all.book.idsIn('sending').filter((id) => this.#all.book.get(id)?.epoch !== lease.epoch);
    for (const payoutId of left) this.#all.book.move(payoutId, 'unknown', { reason, set: { message: toLine(reason) } });
    return Promise.resolve(left);
  }

  // What applications and people do.

  /** @returns false when there is a payout of this id already; it stays as it is */
  enqueue({ payoutId, ...input }: ValidPayout): boolean {
    if (this.#all.book.get(payoutId) !== undefined) return false;
    this.#all.book.add({ payoutId, ...input, state: 'queued', attempt: 0, round: 0 });
    return true;
  }

  /** Retry, resolve, cancel, or the end of a transaction. @returns why nothing was changed, or undefined when it was */
  change({ payoutId, from, to, by, reason, txhash, fee, message }: StateChange): Refusal | undefined {
    const payout = this.#all.book.get(payoutId)?.payout;
    if (payout === undefined) return { kind: 'not_found' };
    if (payout.state !== from) return { kind: 'wrong_state', state: payout.state, attempt: payout.attempt };
    const holder = txhash === undefined ? undefined : this.#all.book.holderOf(txhash);
    if (holder !== undefined && holder !== payoutId) return { kind: 'txhash_taken', payoutId: holder };
    this.#all.book.move(payoutId, to, {
      by,
      reason,
      set: {
        ...(fee === undefined ? {} : { fee }),
        ...(message === undefined ? {} : { message: toLine(message) }),
        round: payout.round + (to === 'queued' ? 1 : 0),
      },
    });
    if (txhash !== undefined) this.#all.book.setTxhash(payoutId, txhash);
    return undefined;
  }

  /** @returns false when the account was paused already; the first reason stays, unless only the journal gave it */
  pause(reason: string, by = 'ann'): boolean {
    const { pausedBy } = this.#all;
    if (pausedBy !== undefined && !(pausedBy === JOURNAL_WITNESS && by !== JOURNAL_WITNESS)) return false;
    Object.assign(this.#all, { pausedReason: reason, pausedBy: by });
    return true;
  }

  /** @returns false when the account was not paused */
  resume(): boolean {
    if (this.#all.pausedReason === undefined) return false;
    Object.assign(this.#all, {
      pausedReason: undefined,
      pausedBy: undefined,
      rejectionsInARow: 0,
      unknownsInARow: 0,
    });
    return true;
  }

  /** All payouts, in the order in which they were accepted. */
  payouts(): readonly Payout[] {
    return this.#all.book.all();
  }

  // What befalls a Redis.

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

  /** The `sender` hash alone is gone: the lease, the count of sends and what is unanswered. */
  loseSender(): void {
    Object.assign(this.#all, { lease: undefined, sends: 0, unanswered: '' });
  }

  /** As adopt-send.lua. @returns true when the payout became `unknown`, false when the ledger knows of the send */
  adoptSend({ payoutId, attempt, epoch, payout }: WitnessedSend, by: string, reason: string): boolean {
    const entry = this.#all.book.get(payoutId);
    const message = reason;
    if (entry === undefined) {
      this.#all.book.add({ ...payout, state: 'unknown', attempt, round: 0, message }, { by, reason, epoch });
      return true;
    }
    if (this.#knows({ payoutId, attempt, epoch })) return false;
    if (!isTransition(entry.payout.state, 'unknown')) {
      this.#all.book.setAttempt(payoutId, attempt, epoch);
      return false;
    }
    this.#all.book.move(payoutId, 'unknown', { by, reason, epoch, set: { attempt, message } });
    return true;
  }

  /** As adopt-ledger.lua: raises the ledger above the journal's highest epoch and number of sends. */
  adoptLedger(highest: { epoch: number; sends: number }): { epoch: number; sends: number } {
    const epoch = Math.max(this.#all.lease?.epoch ?? 0, highest.epoch) + 1;
    const sends = Math.max(this.#all.sends, highest.sends);
    Object.assign(this.#all, { sends, unanswered: 'adopted 0' });
    this.#all.lease = { owner: '', epoch, beat: 0, released: false };
    if (this.#all.pausedBy === JOURNAL_WITNESS) this.resume();
    return { epoch, sends };
  }

  /** As in prelude.lua. */
  #knows({ payoutId, attempt, epoch }: SendAttempt): boolean {
    const entry = this.#all.book.get(payoutId);
    const begun = entry?.payout.attempt ?? 0;
    return begun > attempt || (begun === attempt && (entry?.epoch ?? 0) >= epoch);
  }

  #heldBy({ owner, epoch }: Lease): LeaseView | undefined {
    const { lease } = this.#all;
    return lease?.owner === owner && lease.epoch === epoch && !lease.released ? lease : undefined;
  }

  #noteAnswer(payoutId: string, attempt: number): void {
    if (this.#all.unanswered === `${payoutId} ${attempt}`) this.#all.unanswered = '';
  }
}

function sameView(one: LeaseView | undefined, other: LeaseView | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.owner === other.owner && one.epoch === other.epoch && one.beat === other.beat && one.released === other.released
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
