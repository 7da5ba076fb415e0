import type { SentOutcome } from '../gateway/gateway.js';
import type { Hold, Payout, ValidPayout } from './payout.js';
import type { Spend, SpendEvent } from './control-record.js';
import { isPayoutState, type KeptState, type PayoutState } from './states.js';

/** The ledger as the sender needs it. Narrow, so that the sending rules also run on a simulated ledger. */

/** Two equal views in a row mean that the holder sent no heartbeat between them. */
export interface LeaseView {
  readonly owner: string;
  readonly epoch: number;
  /** Raised by the holder about every two seconds. */
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
  /** How long it may be on its way, as its sender told; see {@link BeginSend.inFlightMs}. Undefined if that is lost. */
  readonly inFlightMs: number | undefined;
  /** How many acts of people the ledger counts. It never falls, so a smaller number is an older copy. */
  readonly acts: number;
  /** How many of them a send journal has on its disk. */
  readonly keptActs: number;
  /** Undefined if the account is not paused. */
  readonly pausedReason: string | undefined;
  /** All of them, the oldest first: each who paused the account has one. */
  readonly pauses: readonly Pause[];
  /** The signed act of the last `resume`, and of the last adoption, as JSON; undefined if unsigned. */
  readonly resumeAct?: string | undefined;
  readonly adoptAct?: string | undefined;
  /** The journals that contradict this ledger, and why. While there is one, nothing is sent. */
  readonly objections: readonly Objection[];
  /** The last entry of each known journal that has sends of this ledger. */
  readonly journals: readonly KnownJournal[];
}

/** One of the account's pauses. */
export interface Pause {
  /** A person; `worker` for the breaker, `adoption` for that of an adopted ledger. */
  readonly by: string;
  readonly reason: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** A payout that a person or the application ended. */
export interface EndedPayout {
  readonly payoutId: string;
  readonly state: KeptState;
  /** Wall clock, ms. */
  readonly at: number;
  /** '' if it was the application. */
  readonly by: string;
  readonly reason: string;
  readonly request: Pick<ValidPayout, 'paymentId' | 'amount' | 'addressTo' | 'symbol'>;
}

export interface UnkeptPayouts {
  readonly ended: readonly EndedPayout[];
  /** Those about which people decided by signature. */
  readonly decided: readonly Payout[];
  /** All that were read, as {@link SenderLedger.noteKept} takes them: what left its state since, or cannot be read, is not kept. */
  readonly entries: readonly string[];
}

/** A send journal, as the ledger knows it. */
export interface KnownJournal extends JournalLocation {
  readonly journalId: string;
  /** The number and token of its last entry; 0 and '' while it has none. */
  readonly sends: number;
  readonly token: string;
  /** How many replicas of Redis it knows; absent for none. */
  readonly replicas?: number | undefined;
  /** Wall clock, ms: when it was used last. */
  readonly at: number;
}

/** The replicas that may become an account's master, and their addresses. */
export interface ReplicasSeen {
  readonly count: number;
  /** Of these replicas and their master: `host:port`, as Redis announces them. */
  readonly names: readonly string[];
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
export interface JournalLocation {
  readonly host: string;
  readonly dir: string;
}

/**
 * Why a send journal and the ledger contradict each other.
 * - `ledger`: the ledger does not know sends that the journal has. It came back older, or empty.
 * - `journal`: the journal lost entries: its file was deleted, truncated or replaced.
 */
export interface Objection extends JournalLocation {
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
  /** The acts of people that the journal knows: a ledger that counts fewer is an older copy. */
  readonly acts: number;
  /** The journal for this send, with its last entry. */
  readonly journal: KnownJournal;
  /**
   * How long after this begin a byte of the request may still reach the gateway, in ms: until it is written, while the
   * sender's kernel may send it again, and while the network may delay it. Every wait for a request without a response
   * uses it. After a reset only the network counts.
   */
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

export type BeginResult =
  | {
      readonly kind: 'begun';
      readonly sendCount: number;
      readonly acts: number;
      /** In the index of `sending`, and not of `queued`. False is a mistake of this program. */
      readonly isIndexed: boolean;
    }
  | RejectionOf<'begin-send'>;

/** When to pause the account in the same step. */
export interface BreakerRule {
  readonly maxRejectionsInARow: number;
  readonly maxUnknownsInARow: number;
  /** Set if the rejection names the payout's own data: it then counts apart, up to this limit. */
  readonly maxPayoutRejectionsInARow?: number | undefined;
  /** Set if the gateway's message looks like a block of the account. */
  readonly blockedReason?: string | undefined;
}

export interface FinishResult {
  /** False if recorded before, or an operator has decided meanwhile. */
  readonly recorded: boolean;
  readonly pausedReason?: string;
  /** This result proves a payment of a payout that was written off, or is sent again: recorded as `lateGatewayId`. */
  readonly latePayment?: true;
}

export interface LeaseRenewal {
  /** Since the lease was taken. */
  readonly heartbeat: number;
  /** A journal contradicts this ledger: an operator decides who sends. */
  readonly isObjectedTo: boolean;
  /** How long from now on a request without a response may still arrive, in ms; its sender may have reset it meanwhile. */
  readonly arrivesForMs: number;
  readonly glance: LedgerGlance;
}

/** What a heartbeat sees of the ledger. While it is what the holder knows, the ledger need not be read. */
export interface LedgerGlance extends Pick<SenderView, 'ledgerId' | 'sendCount' | 'last' | 'acts' | 'keptActs'> {
  /** How many payouts are in `sending`. */
  readonly sending: number;
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
  /** @returns undefined if the lease is lost */
  renewLease(lease: Lease): Promise<LeaseRenewal | undefined>;
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
  /** @param inFlightMs - how long the request, which was reset, may still be on its way without a response */
  finishSend(attempt: SendAttempt, result: SentOutcome, rule: BreakerRule, inFlightMs: number): Promise<FinishResult>;
  /** Of all processes. */
  readSending(): Promise<readonly SendAttempt[]>;
  /**
   * Turns attempts of earlier holders, which may have been sent, into `unknown`.
   * @param inFlightMs - how long the request of one may be on its way whose begin the ledger has forgotten
   * @returns the changed payouts, or undefined if the lease is lost
   */
  markSendsUnknown(
    lease: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    inFlightMs: number,
  ): Promise<readonly string[] | undefined>;
  /**
   * Removes entries of `sending` whose record is no payout in that state: deleted, or altered.
   * @returns the removed ones, or undefined if the lease is lost
   */
  removeSendingEntries(
    lease: Lease,
    payoutIds: readonly string[],
    reason: string,
  ): Promise<readonly string[] | undefined>;
  /**
   * Payouts that were cancelled, written off or rejected by a person, and are in no journal yet, the oldest first. Resolves once no failover
   * can forget them.
   */
  readUnkept(limit: number): Promise<UnkeptPayouts>;
  /** Records that a journal has so many acts, and these entries, on its disk. */
  noteKept(acts: number, entries: readonly string[]): Promise<void>;
  /** Records that a journal contradicts this ledger: from then on no process begins a send. */
  object(objection: Objection): Promise<void>;
}

/** Why a script changed nothing. Only this file knows the meaning of their negative numbers. */
type ScriptRejection =
  | { readonly kind: 'lease_lost' }
  | { readonly kind: 'other_ledger'; readonly ledgerId: string }
  | { readonly kind: 'sends_differ'; readonly sendCount: number; readonly last: string; readonly acts: number }
  | { readonly kind: 'paused'; readonly reason: string }
  | { readonly kind: 'objected'; readonly journalId: string; readonly reason: string }
  | { readonly kind: 'others_sending'; readonly payoutIds: readonly string[] }
  | { readonly kind: 'wrong_state'; readonly state: PayoutState | undefined; readonly attempt: number }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'gateway_id_taken'; readonly payoutId: string }
  /** A request may still be on its way for so long. */
  | { readonly kind: 'in_flight'; readonly forMs: number }
  /** This attempt was begun after the one that was decided about. */
  | { readonly kind: 'sent_since'; readonly attempt: number }
  /** A late payment was proved: it must not be sent again. */
  | { readonly kind: 'paid_late'; readonly gatewayId: string }
  /** The key rejected the payout, and cannot approve it any more. */
  | { readonly kind: 'rejected_before'; readonly by: string }
  | { readonly kind: 'too_many_approvals'; readonly count: number }
  /** The ledger lost what was read from it before. */
  | { readonly kind: 'came_back_older' }
  | { readonly kind: 'other_gateway'; readonly audience: string }
  /** Several pauses stand, by these, and none of them was meant. */
  | { readonly kind: 'other_pauses'; readonly by: readonly string[] }
  /** The account has, or had, a sender. */
  | { readonly kind: 'not_new'; readonly trace: string }
  /** A cancellation is not undone: a word that says why. */
  | { readonly kind: 'not_undone'; readonly why: string }
  | { readonly kind: 'too_many_comments'; readonly count: number };

/** Why each script may change nothing. The others never refuse. */
export const REJECTIONS = {
  'add-approval': ['wrong_state', 'not_found', 'rejected_before', 'too_many_approvals'],
  'adopt-ledger': ['came_back_older'],
  'begin-send': [
    ...(['lease_lost', 'other_ledger', 'other_gateway', 'sends_differ', 'paused', 'objected'] as const),
    ...(['others_sending', 'wrong_state'] as const),
  ],
  'change-payouts': ['wrong_state', 'not_found', 'gateway_id_taken', 'in_flight', 'sent_since', 'paid_late'],
  'comment-payout': ['not_found', 'too_many_comments'],
  'declare-new': ['not_new'],
  'finish-send': ['gateway_id_taken'],
  'mark-sends-unknown': ['lease_lost'],
  'remove-entries': ['lease_lost'],
  'resume-account': ['objected', 'other_pauses'],
  'undo-cancel': ['wrong_state', 'not_found', 'not_undone'],
} as const satisfies Readonly<Record<string, readonly ScriptRejection['kind'][]>>;

export type RejectingScript = keyof typeof REJECTIONS;

export type RejectionOf<Name extends RejectingScript> = Extract<
  ScriptRejection,
  { readonly kind: (typeof REJECTIONS)[Name][number] }
>;

/** @returns undefined if the script did its work; of a list, the reply of one payout */
export function parseRejection<Name extends RejectingScript>(
  script: Name,
  reply: unknown,
): RejectionOf<Name> | undefined {
  const rejection = parseCode(reply);
  if (rejection === undefined) return undefined;
  const { kind } = rejection;
  const known: readonly ScriptRejection['kind'][] = REJECTIONS[script];
  if (!known.includes(kind)) throw new Error(`${script} refused with ${kind}, which it never should`);
  return rejection as RejectionOf<Name>;
}

function parseCode(reply: unknown): ScriptRejection | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [code, ...rest] = reply as unknown[];
  if (typeof code !== 'number' || code >= 0) return undefined;
  const details = rest.map(String);
  const [first = '', second = '', third = ''] = details;
  switch (code) {
    case -1:
      return { kind: 'lease_lost' };
    case -2:
      return { kind: 'other_ledger', ledgerId: first };
    case -3:
      return { kind: 'sends_differ', sendCount: Number(first), last: second, acts: Number(third) };
    case -4:
      return { kind: 'paused', reason: first };
    case -5:
      return { kind: 'others_sending', payoutIds: details };
    case -6:
      return { kind: 'wrong_state', state: isPayoutState(first) ? first : undefined, attempt: Number(second) };
    case -7:
      return { kind: 'not_found' };
    case -8:
      return { kind: 'gateway_id_taken', payoutId: first };
    case -9:
      return { kind: 'objected', journalId: first, reason: second };
    case -11:
      return { kind: 'in_flight', forMs: Number(first) };
    case -12:
      return { kind: 'sent_since', attempt: Number(first) };
    case -13:
      return { kind: 'paid_late', gatewayId: first };
    case -14:
      return { kind: 'came_back_older' };
    case -20:
      return { kind: 'rejected_before', by: first };
    case -21:
      return { kind: 'too_many_approvals', count: Number(first) };
    case -22:
      return { kind: 'not_new', trace: first };
    case -23:
      return { kind: 'other_gateway', audience: first };
    case -24:
      return { kind: 'other_pauses', by: details };
    case -25:
      return { kind: 'not_undone', why: first };
    case -26:
      return { kind: 'too_many_comments', count: Number(first) };
    default:
      throw new Error(`A ledger script returned ${code}, which has no meaning`);
  }
}
