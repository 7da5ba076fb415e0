import type { Spend, SpendEvent } from './spend-event.js';
import type { SentOutcome } from '../gateway/withdraw-gateway.js';
import type { Hold } from './hold.js';
import type { Payout } from './payout.js';
import type { ScriptRejection } from './script-rejection.js';
import type { PayoutState } from './states.js';

/** The ledger as the sender needs it. Narrow, so that the sending rules also run on a simulated ledger. */

/** Two equal views in a row mean that the holder sent no heartbeat between them. */
export interface LeaseView {
  readonly owner: string;
  readonly epoch: number;
  /** Raised by the holder about every second. */
  readonly heartbeat: number;
  /** The holder gave the lease back after its last response. */
  readonly released: boolean;
}

export function isSameLease(one: LeaseView | undefined, other: LeaseView | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const { owner, epoch, heartbeat, released } = other;
  return one.owner === owner && one.epoch === epoch && one.heartbeat === heartbeat && one.released === released;
}

/** The right to send, while the ledger agrees: a newer epoch ends it. */
export interface Lease {
  readonly owner: string;
  readonly epoch: number;
}

export interface SenderView {
  readonly ledgerId: string;
  /** The first sender's audience: the gateway that makes these payments. Undefined before that. */
  readonly audience?: string | undefined;
  /** Undefined if no process ever held the lease, or the key is gone. */
  readonly lease: LeaseView | undefined;
  /** Sends begun on this ledger. It never falls, so a smaller number is an older copy. */
  readonly sendCount: number;
  /**
   * The token of the last send begun; empty before the first. A send begins only if its sender knows the one before. So
   * this token identifies all sends.
   */
  readonly last: string;
  /** The send journal that has the last send; undefined before the first one. */
  readonly lastJournalId: string | undefined;
  /** The last attempt has no response of the gateway: its request may still be on its way. */
  readonly awaitingAnswer: boolean;
  /** How long it may be on its way, by its sender's settings, in ms; 0 if unknown. */
  readonly inFlightMs: number;
  /** Undefined if the account is not paused. */
  readonly pausedReason: string | undefined;
  /** The signed act of the last `resume`, and of the last adoption, as JSON; undefined if unsigned. */
  readonly resumeAct?: string | undefined;
  readonly adoptAct?: string | undefined;
  /** The journals that contradict this ledger, and why. While there is one, nothing is sent. */
  readonly objections: readonly Objection[];
  /** The last entry of each known journal that has sends of this ledger. */
  readonly journals: readonly KnownJournal[];
}

/** A send journal, as the ledger knows it. */
export interface KnownJournal extends JournalPlace {
  readonly journalId: string;
  /** The number and token of its last entry; 0 and '' while it has none. */
  readonly sends: number;
  readonly token: string;
  /** Wall clock, ms: when it was used last. */
  readonly at: number;
}

/** Where a send journal ends. Kept elsewhere, it shows whether lines at the end were cut off. */
export interface JournalHead {
  readonly journalId: string;
  /** SHA-256 of the newest line, hexadecimal. */
  readonly hash: string;
  /** The number of the journal's last send among the ledger's sends; 0 before the first. */
  readonly sends: number;
}

/** Where a send journal is, for operators. */
export interface JournalPlace {
  readonly host: string;
  readonly dir: string;
}

/**
 * Why a send journal and the ledger contradict each other.
 * - `ledger`: the ledger does not know sends that the journal has. It came back older, or empty.
 * - `journal`: the journal lost entries: its file was deleted, truncated or replaced.
 */
export interface Objection extends JournalPlace {
  readonly journalId: string;
  readonly kind: 'ledger' | 'journal';
  readonly reason: string;
  /** The highest number of a send that the journal knows. */
  readonly sends: number;
  /** Wall clock, ms. */
  readonly at: number;
}

/**
 * One attempt of one payout. The token is its identity: neither another process nor a ledger that came back older gives
 * it out again. The number only orders a payout's attempts.
 */
export interface SendAttempt {
  readonly payoutId: string;
  readonly attempt: number;
  readonly token: string;
}

export interface ForgottenSend<Send extends SendAttempt> {
  readonly send: Send;
  /** The payout's state in the ledger; undefined if it has no such payout. */
  readonly state: PayoutState | undefined;
}

export interface BeginSend extends SendAttempt {
  readonly lease: Lease;
  /** The gateway whose payments the sender makes: a ledger that is bound to another refuses. */
  readonly audience: string;
  /** The holder's last acknowledged heartbeat: a ledger that has seen fewer came back older. */
  readonly heartbeat: number;
  readonly ledgerId: string;
  /** The sends that the sender expects this ledger to have seen, and the last one's token. */
  readonly sendCount: number;
  readonly last: string;
  /** The journal for this send, with its last entry. */
  readonly journal: KnownJournal;
  /** How long the request may be on its way. */
  readonly inFlightMs: number;
  /** {@link Payout.decisions} when the send was permitted: a later decision must be checked first. */
  readonly decisions: number;
  /** Undefined if no policy counts. */
  readonly spend?: CountedSpend | undefined;
}

/** A send that the ledger remembers for the windows of a policy. */
export interface CountedSpend {
  readonly spend: Spend;
  /** Earlier spends may be forgotten; wall clock, ms. */
  readonly since: number;
}

export type BeginResult = { readonly kind: 'begun'; readonly sendCount: number } | ScriptRejection;

/** When to pause the account in the same step. */
export interface BreakerRule {
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Set if the gateway's message looks like a block of the account. */
  readonly blockedReason?: string;
}

export interface FinishResult {
  /** False if recorded before, or an operator has decided meanwhile. */
  readonly recorded: boolean;
  readonly pausedReason?: string;
  /** This result proves a payment of a payout that was written off, or is sent again: recorded as `lateTxhash`. */
  readonly latePayment?: true;
}

export interface SenderLedger {
  readSender(): Promise<SenderView>;
  /**
   * @param journal - the journal for the sends; others that were not used since `forgetBefore` (wall clock, ms) are
   * forgotten
   * @returns the new epoch, or undefined if the lease or the sends have changed since they were seen
   */
  acquireLease(
    owner: string,
    seen: SenderView,
    journal: KnownJournal,
    forgetBefore: number,
  ): Promise<number | undefined>;
  /** @returns the number of heartbeats since the lease was taken, undefined if it is lost */
  renewLease(lease: Lease): Promise<number | undefined>;
  releaseLease(lease: Lease): Promise<void>;
  /** @throws RedisUnavailableError; UnreadableRecordError if it is not a payout, which no repetition changes */
  readPayout(payoutId: string): Promise<Payout | undefined>;
  /** The unknown ones, in order. */
  findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<readonly ForgottenSend<Send>[]>;
  /** Resolves once the begin is as durable as the ledger can make it. */
  beginSend(begin: BeginSend): Promise<BeginResult>;
  /**
   * Holds a queued payout that may not be sent. Repeating it is safe.
   * @param attempt - when it was checked: a payout sent since is not held; undefined for any
   * @returns false if it is not queued any more, or at another attempt; nothing was changed
   */
  holdPayout(payoutId: string, attempt: number | undefined, hold: Hold): Promise<boolean>;
  /**
   * Payouts queued or held by the policy, with an unexpired signature from before a time. Reads only the 1,000 of each
   * kind that have waited longest. A hint: records are not verified.
   * @param time - wall clock, ms
   */
  findSignedBefore(time: number): Promise<readonly string[]>;
  /** The spends that a policy counts, the oldest first. Skips unreadable ones. */
  readSpends(): Promise<readonly SpendEvent[]>;
  /** Puts back an attempt that is proved unsent. No effect if it never began. */
  revertSend(attempt: SendAttempt, reason: string): Promise<void>;
  /** @param doubtMs - how long an unanswered request may be on its way */
  finishSend(attempt: SendAttempt, result: SentOutcome, rule: BreakerRule, doubtMs: number): Promise<FinishResult>;
  /** Of all processes. */
  readSending(): Promise<readonly SendAttempt[]>;
  /**
   * Turns attempts of earlier holders, which may have been sent, into `unknown`.
   * @param doubtMs - how long their requests may be on their way
   * @returns the changed payouts, or undefined if the lease is lost
   */
  markSendsUnknown(
    lease: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    doubtMs: number,
  ): Promise<readonly string[] | undefined>;
  /** Records that a journal contradicts this ledger: from then on no process begins a send. */
  object(objection: Objection): Promise<void>;
}
