import type { Spend, SpendEvent } from './spend-event.js';
import type { SentOutcome } from '../gateway/withdraw-gateway.js';
import type { Hold } from './hold.js';
import type { Payout } from './payout.js';
import type { ScriptRejection } from './script-rejection.js';
import type { PayoutState } from './states.js';

/** The ledger as the sender needs it. Narrow, so that the sending rules also run on a simulated ledger. */

/** What a process sees of the lease. Two equal views in a row mean that the holder sent no heartbeat between them. */
export interface LeaseView {
  readonly owner: string;
  readonly epoch: number;
  /** Raised by the holder about every second. */
  readonly heartbeat: number;
  /** The holder gave the lease back after its last response. */
  readonly released: boolean;
}

/** Whether the lease is as it was seen before: the holder did nothing in between. */
export function isSameLease(one: LeaseView | undefined, other: LeaseView | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const { owner, epoch, heartbeat, released } = other;
  return one.owner === owner && one.epoch === epoch && one.heartbeat === heartbeat && one.released === released;
}

/** The right to send, as long as the ledger agrees: a newer epoch ends it. */
export interface Lease {
  readonly owner: string;
  readonly epoch: number;
}

export interface SenderView {
  readonly ledgerId: string;
  /** Which gateway's payments these are: the audience of the sender that began first. Undefined before that. */
  readonly audience?: string | undefined;
  /** Undefined when no process ever held the lease, or the key is gone. */
  readonly lease: LeaseView | undefined;
  /** How many sends this ledger has seen begin. It never falls, so a smaller number is an older copy. */
  readonly sendCount: number;
  /**
   * The token of the last send begun. A send begins only where the one before is the one that its sender knows, so this
   * token names the whole line of sends. Empty before the first one.
   */
  readonly last: string;
  /** The send journal that has the last send; undefined before the first one. */
  readonly lastJournalId: string | undefined;
  /** A request may still be on its way: the last attempt has no response of the gateway. */
  readonly awaitingAnswer: boolean;
  /** For how long it may be on its way, as its sender reckoned, in ms; 0 where nothing is known. */
  readonly inFlightMs: number;
  /** Why the account is paused; undefined when it is not. */
  readonly pausedReason: string | undefined;
  /** The signed act of the last `resume`, and of the last adoption, as JSON; undefined where none was signed. */
  readonly resumeAct?: string | undefined;
  readonly adoptAct?: string | undefined;
  /** The journals that contradict this ledger, and why. While there is one, nothing is sent. */
  readonly objections: readonly Objection[];
  /** The last entry of each journal that has sends of this ledger, as far as the ledger knows. */
  readonly journals: readonly KnownJournal[];
}

/** A send journal, as the ledger knows it. */
export interface KnownJournal extends JournalPlace {
  readonly journalId: string;
  /** The number and the token of its last entry; 0 and '' while it has none. */
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
 *
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
 * One attempt of one payout. The token is its identity: neither another process nor a ledger that came back older can
 * give it out again. The number only orders the attempts of a payout.
 */
export interface SendAttempt {
  readonly payoutId: string;
  readonly attempt: number;
  readonly token: string;
}

/** A journaled send that the ledger does not know of. */
export interface ForgottenSend<Send extends SendAttempt> {
  readonly send: Send;
  /** In which the ledger has the payout; undefined when it has no such payout. */
  readonly state: PayoutState | undefined;
}

export interface BeginSend extends SendAttempt {
  readonly lease: Lease;
  /** Which gateway's payments the sender makes: a ledger that is bound to another refuses. */
  readonly audience: string;
  /** The holder's last heartbeat that was acknowledged: a ledger that has seen fewer came back older. */
  readonly heartbeat: number;
  readonly ledgerId: string;
  /** The number of sends, and the token of the last one, that the sender believes this ledger has seen. */
  readonly sendCount: number;
  readonly last: string;
  /** The journal that it will be written to, with its last entry. */
  readonly journal: KnownJournal;
  /** For how long the request may be on its way, in ms. */
  readonly inFlightMs: number;
  /** {@link Payout.decisions} when the send was permitted: one that was stored since is to be judged first. */
  readonly decisions: number;
  /** What it counts for; undefined where no policy counts. */
  readonly spend?: CountedSpend | undefined;
}

/** A send that the ledger remembers for the windows of a policy. */
export interface CountedSpend {
  readonly spend: Spend;
  /** What was spent before may be forgotten; wall clock, ms. */
  readonly since: number;
}

export type BeginResult = { readonly kind: 'begun'; readonly sendCount: number } | ScriptRejection;

/** When the account is to be paused in the same step. */
export interface BreakerRule {
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Set when the gateway's message looks like a block of the account. */
  readonly blockedReason?: string;
}

export interface FinishResult {
  /** False when the attempt was recorded before, or an operator has decided in the meantime. */
  readonly recorded: boolean;
  /** Set when this result paused the account. */
  readonly pausedReason?: string;
  /** True when it proves a payment of a payout that was written off, or is sent again: noted as `lateTxhash`. */
  readonly latePayment?: true;
}

export interface SenderLedger {
  readSender(): Promise<SenderView>;
  /**
   * @param journal - the one that the sends will be written to; others that were not used since `forgetBefore` (wall clock, ms) are
   * forgotten
   * @returns the new epoch, or undefined when the lease, or the sends, are no longer as they were seen
   */
  acquireLease(
    owner: string,
    seen: SenderView,
    journal: KnownJournal,
    forgetBefore: number,
  ): Promise<number | undefined>;
  /** @returns the number of heartbeats since the lease was taken, undefined when it is lost */
  renewLease(lease: Lease): Promise<number | undefined>;
  releaseLease(lease: Lease): Promise<void>;
  /** @throws RedisUnavailableError; UnreadableRecordError when it is no payout, and asking again changes nothing */
  readPayout(payoutId: string): Promise<Payout | undefined>;
  /** Those of the sends that the ledger does not know of, in the order given. */
  findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<readonly ForgottenSend<Send>[]>;
  /** Resolves once the beginning is as durable as the ledger can make it. */
  beginSend(begin: BeginSend): Promise<BeginResult>;
  /**
   * Holds a queued payout that may not be sent. Repeating it is safe.
   * @param attempt - that it had when it was checked: a payout that was sent since is not held; undefined for any
   * @returns false when it is not queued any more, or at another attempt; nothing was changed then
   */
  holdPayout(payoutId: string, attempt: number | undefined, hold: Hold): Promise<boolean>;
  /**
   * Payouts that were signed before a time, whose signature has not expired, and that are queued or held by the policy: of the
   * 1,000 that have waited longest for each. What the records say: a hint.
   * @param time - wall clock, ms
   */
  findSignedBefore(time: number): Promise<readonly string[]>;
  /** What was spent where a policy counts, the oldest first. What cannot be read is left out. */
  readSpends(): Promise<readonly SpendEvent[]>;
  /** Puts back an attempt that is proved not to have been sent. Without effect when it never began. */
  revertSend(attempt: SendAttempt, reason: string): Promise<void>;
  /** @param doubtMs - for how long the request may be on its way where there is no response, in ms */
  finishSend(attempt: SendAttempt, result: SentOutcome, rule: BreakerRule, doubtMs: number): Promise<FinishResult>;
  /** The attempts that are under way as the ledger sees it, no matter who began them. */
  readSending(): Promise<readonly SendAttempt[]>;
  /**
   * Turns attempts of earlier holders, which may have been sent, into `unknown`.
   * @param doubtMs - for how long their requests may be on their way, in ms
   * @returns the payouts that were changed, or undefined when the lease is lost
   */
  markSendsUnknown(
    lease: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    doubtMs: number,
  ): Promise<readonly string[] | undefined>;
  /** Notes that a journal contradicts this ledger: from then on nothing begins, in no process. */
  object(objection: Objection): Promise<void>;
}
