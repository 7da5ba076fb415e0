import type { EndedPayout, JournalLocation, SendAttempt } from '../ledger/sender-ledger.js';
import type { STORED_FORMAT } from '../base/stored-format.js';
import type { PaymentNames, WithdrawRequest } from '../gateway/gateway.js';

/**
 * The lines of a send journal: one JSON object a line, whose fields show its kind. In a file every line also has
 * `prev`, the SHA-256 of the lines before it (see `line-chain.ts`). Times are wall clock, ms; hashes are SHA-256,
 * hexadecimal; amounts and rates are decimal strings.
 */

/**
 * Identifies the journal. It is the first line of each file, and is repeated when a mark changes, so that marks survive
 * removed files.
 */
export interface HeaderLine extends JournalMarks {
  readonly v: typeof STORED_FORMAT;
  readonly journalId: string;
}

/** Facts that must outlive the file they were written in. `complete` states that nothing is missing before `bornAt`. */
export interface JournalMarks {
  /** Start of the journal, or of its chain. Earlier sends may be unknown. */
  readonly bornAt: number;
  readonly complete?: CompleteNote | undefined;
  /** Latest expiry (ms) of the intents of sends in removed files. */
  readonly prunedUpTo?: number | undefined;
}

export interface CompleteNote {
  readonly at: number;
  readonly by: string;
  readonly reason: string;
}

/** A person states that nothing is missing before the journal began. */
interface CompleteLine {
  readonly complete: CompleteNote;
}

/** The account was paused, when its worker keeps pauses here. */
export interface PausedLine {
  readonly paused: { readonly at: number; readonly reason: string };
}

export interface ActNote {
  readonly at: number;
  readonly act: string;
}

/** A signed act ended that pause. */
interface ResumedLine {
  readonly resumed: ActNote;
}

/** Addresses that were paid in files that are removed. */
export interface SeenLine {
  /** @param addresses - by `walletAndTagKey` */
  readonly seen: { readonly at: number; readonly addresses: readonly string[] };
}

/** Accepted dollar rates. Later rates are compared with the newest of each currency. */
export interface RatesLine {
  readonly rates: {
    readonly at: number;
    readonly usd: Readonly<Record<string, string>>;
  };
}

/** An approver's rejection. It counts even if Redis loses it or an attacker removes it. */
export interface RejectedLine {
  readonly rejected: RejectionNote;
}

/** Its person took a rejection back. */
interface UnrejectedLine {
  readonly unrejected: Pick<RejectionNote, 'payoutId' | 'rejection'>;
}

export interface RejectionNote {
  readonly payoutId: string;
  /** SHA-256 of the signed text, hexadecimal: what takes it back names it. */
  readonly rejection: string;
  /** The name of the key. */
  readonly by: string;
  /** Its person, when the worker verified it. A worker without a keyring cannot. */
  readonly person?: string;
}

/**
 * How many replicas of Redis are known, and their addresses. A line only raises the number, unless an operator lowered
 * it.
 */
export interface ReplicasLine {
  readonly replicas: ReplicasNote;
}

export interface ReplicasNote {
  readonly at: number;
  readonly count: number;
  readonly names: readonly string[];
  /** Only in a line that lowers it. */
  readonly lowered?: { readonly by: string; readonly reason: string } | undefined;
}

/** What people did, as a worker found it: a ledger with fewer acts is an older copy. */
export interface ActsLine {
  readonly acts: {
    readonly at: number;
    readonly count: number;
    /** Payouts that were cancelled or written off since the line before. An adoption puts them back. */
    readonly ended: readonly EndedPayout[];
  };
}

/** The ledger that the journal is bound to, and what it had begun. */
export interface JournaledLedger {
  readonly ledgerId: string;
  readonly epoch: number;
  /** Number and token of the last send begun in the ledger ('' before the first). */
  readonly sends: number;
  readonly token: string;
  /** An adoption has the number `sends` for itself: nothing was sent under it. */
  readonly adopted?: true | undefined;
  /**
   * The adoption gave up unknown sends, and so put every payout that could be sent in doubt. A ledger that forgot the
   * adoption has forgotten the doubt.
   */
  readonly gaveUp?: true | undefined;
}

/** A send about to be written, with all fields that restore its payout in a ledger that forgot it. */
export interface SendLine extends SendAttempt {
  readonly epoch: number;
  readonly sends: number;
  /** The previous send in any journal ('' before the first). Numbers between the two were begun and never written. */
  readonly after: { readonly sends: number; readonly token: string };
  readonly request: WithdrawRequest;
  /** See {@link BeginSend.inFlightMs}. */
  readonly inFlightMs: number;
  /** How many acts of people the ledger counted at the begin; absent for none. */
  readonly knownActs?: number | undefined;
  readonly at: number;
  readonly signed?: SignedSend | undefined;
  readonly judged?: JudgedSend | undefined;
}

export interface JudgedSend {
  readonly policy: string;
  /** Millionths of a dollar at that moment. Absent if no rule needed it. */
  readonly usd?: string | undefined;
  /** Of a payment with a symbol: the most of its currency that it may be at that moment. */
  readonly coins?: string | undefined;
  readonly approvals?: readonly string[] | undefined;
}

/**
 * What a verifier of a send needs beside the payment and its times in ms, so that the statement can be made again without the
 * payout's record.
 */
export interface IntentProof {
  readonly signature: string;
  readonly audience: string;
  /** The times as they were signed, if `toISOString` writes them otherwise. */
  readonly issuedAt?: string | undefined;
  readonly expiresAt?: string | undefined;
  /** SHA-256, hexadecimal. */
  readonly metadataHash?: string | undefined;
  readonly requestedBy?: string | undefined;
  readonly reference?: string | undefined;
  readonly notBefore?: string | undefined;
}

/** The verified intent of a send. Hashes are SHA-256, hexadecimal; times are wall clock, ms. */
export interface SignedSend {
  readonly intent: string;
  readonly key: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Verifies the signature again without the payout's record. */
  readonly proof: IntentProof;
  readonly act?: string | undefined;
  /** Earlier attempts that paid nothing, by the verified act. */
  readonly clears?: readonly number[] | undefined;
}

/** The outcome of a send, as its sender saw it. */
export type JournaledOutcome =
  /** `found`: not by its response. The gateway was asked by order id, later. */
  | ({ readonly kind: 'accepted'; readonly found?: true } & PaymentNames)
  | { readonly kind: 'rejected'; readonly message: string }
  /** Its request was reset, and may still be on its way until then (wall clock, ms). */
  | { readonly kind: 'unknown'; readonly reason: string; readonly inFlightUntil: number }
  /** It was journaled, but not written. */
  | { readonly kind: 'not_sent'; readonly reason: string };

/** What came of a send. */
export interface OutcomeLine extends SendAttempt {
  readonly outcome: JournaledOutcome;
  readonly at: number;
}

/** Other journals with sends of this account. Without them this journal is incomplete. */
interface PeersLine {
  readonly peers: readonly JournalPeer[];
}

/** Another journal of the account, as a journal names it. */
export interface JournalPeer extends JournalLocation {
  readonly journalId: string;
}

type ControlLine =
  CompleteLine | PausedLine | ResumedLine | SeenLine | RejectedLine | UnrejectedLine | RatesLine | ReplicasLine;

export function identify({ payoutId, attempt, token }: SendAttempt): string {
  return `${payoutId} ${attempt} ${token}`;
}

export type JournalLine = HeaderLine | JournaledLedger | PeersLine | SendLine | OutcomeLine | ActsLine | ControlLine;

export function isControlLine(line: JournalLine): line is ControlLine {
  if ('complete' in line) return !('v' in line);
  return ['paused', 'resumed', 'seen', 'rejected', 'unrejected', 'rates', 'replicas'].some((kind) => kind in line);
}

export interface JournalEntry extends SendLine {
  readonly outcome?: JournaledOutcome | undefined;
  /** Only on entries read from disk. */
  readonly outcomeAt?: number | undefined;
}

export type JournalItem = JournalEntry | JournaledLedger | PeersLine | ActsLine;
