import type { JournalPlace, SendAttempt } from '../ledger/sender-ledger.js';
import type { WithdrawRequest } from '../gateway/withdraw-gateway.js';

/**
 * The lines of a send journal: JSON objects, one a line. What a line is follows from its fields. In a file every line of
 * format 3 also has `prev`, the SHA-256 of the lines before it (see `line-chain.ts`).
 */

/**
 * The version of the journal's format, named by the first line of each file. Format 1 had no such line, knew an attempt by its
 * epoch, and held neither outcomes nor the journal's id. Format 2 had no chain of hashes, and nothing about signatures.
 */
export const JOURNAL_FORMAT = 3;

/** The header of a format without a chain. */
export interface FormerHeaderLine {
  readonly v: 2;
  readonly journalId: string;
}

/**
 * Which journal this is. The first line of each file, and again where one of the marks changes: a file that is removed must not
 * take them along.
 */
export interface HeaderLine extends JournalMarks {
  readonly v: 3;
  readonly journalId: string;
}

/** What has to outlive the file in which it was noted first. */
export interface JournalMarks {
  /** When the journal, or its chain, began: wall clock, ms. What was sent earlier may be unknown to it. */
  readonly bornAt: number;
  /** An operator stated that nothing is missing before `bornAt`. */
  readonly complete?: CompleteNote | undefined;
  /** Until when the intents of sends may be valid (ms) whose files were removed. */
  readonly prunedUpTo?: number | undefined;
}

export interface CompleteNote {
  /** Wall clock, ms. */
  readonly at: number;
  readonly by: string;
  readonly reason: string;
}

/** An operator states on the host: nothing of this account was sent before, but what this journal knows. */
export interface CompleteLine {
  readonly complete: CompleteNote;
}

/** The worker stopped sending by itself. */
export interface PausedLine {
  /** @param at - wall clock, ms */
  readonly paused: { readonly at: number; readonly reason: string };
}

/** What an operator's signed act did. */
export interface ActNote {
  /** Wall clock, ms. */
  readonly at: number;
  /** SHA-256 of the act, hexadecimal. */
  readonly act: string;
}

/** A signed act ended the pause. */
export interface ResumedLine {
  readonly resumed: ActNote;
}

/** Addresses to which a payout was to be sent for the first time, as far as this journal knows. */
export interface SeenLine {
  /**
   * @param at - wall clock, ms
   * @param exact - the addresses are as `walletAndTagKey` makes them. Without it they were cut before their first colon: each
   * names some wallet, with any tag, or only the prefix of one.
   */
  readonly seen: {
    readonly at: number;
    readonly addresses: readonly string[];
    readonly exact?: true | undefined;
  };
}

/** What currencies are worth in dollars, as it counted: later rates are held against the newest of each. */
export interface RatesLine {
  readonly rates: {
    /** Wall clock, ms. */
    readonly at: number;
    /** Decimal strings by currency. */
    readonly usd: Readonly<Record<string, string>>;
  };
}

/** An approver's rejection that a worker verified. Redis may lose it, or somebody may remove it: it counts all the same. */
export interface RejectedLine {
  readonly rejected: RejectionNote;
}

/** What identifies an intent, and its place among those of its payout. */
export type SignedIntent = Pick<RejectionNote, 'payoutId' | 'intent' | 'issuedAt'>;

export interface RejectionNote {
  readonly payoutId: string;
  /** SHA-256 of the intent, hexadecimal: that payment, as it was signed. */
  readonly intent: string;
  /** When the intent was signed, wall clock, ms. */
  readonly issuedAt: number;
  /** The name of the approver's key. */
  readonly by: string;
  /** Wall clock, ms. */
  readonly expiresAt: number;
}

/** The ledger that the sends which follow belong to, and where its line of sends stood. */
export interface JournaledLedger {
  readonly ledgerId: string;
  /** The highest epoch seen. */
  readonly epoch: number;
  /** The number of the last send begun in the ledger, and its token ('' before the first). */
  readonly sends: number;
  readonly token: string;
  /** An adoption has the number `sends` for itself: nothing was sent under it. */
  readonly adopted?: true | undefined;
  /**
   * That adoption gave up sends which nobody knows, and so put every payout that could be sent in doubt: a ledger that has
   * forgotten the adoption has forgotten the doubt.
   */
  readonly gaveUp?: true | undefined;
}

/** A send that is about to be written, with all that is needed to make its payout known again to a ledger that forgot it. */
export interface SendLine extends SendAttempt {
  readonly epoch: number;
  /** Its number among the ledger's sends. */
  readonly sends: number;
  /**
   * The send before it that a journal has: sends between the two were begun with this journal, and never written.
   * Format 1 knew the number only.
   */
  readonly after: { readonly sends: number; readonly token?: string | undefined };
  readonly request: WithdrawRequest;
  /** Wall clock, ms. */
  readonly at: number;
  /** The signature that allowed it; absent where none was asked for. */
  readonly signed?: SignedSend | undefined;
  /** What the policy was told of it; absent where there is none. */
  readonly judged?: JudgedSend | undefined;
}

/** By which policy a send was let pass. */
export interface JudgedSend {
  /** SHA-256 of the policy, hexadecimal. */
  readonly policy: string;
  /** What it was worth at that moment, in millionths of a dollar; absent where no rule asked. */
  readonly usd?: string | undefined;
  /** Hashes of the approvals that counted. */
  readonly approvals?: readonly string[] | undefined;
}

/**
 * What a verifier of a send needs beside the payment and its times in ms, so that the statement can be made again without the
 * payout's record.
 */
export interface IntentProof {
  readonly signature: string;
  /** Undefined where it names none. */
  readonly audience?: string | undefined;
  /** The times as they were signed, where that is not how `toISOString` writes them. */
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
  /** Hash of the signed intent. */
  readonly intent: string;
  /** The name of the key that signed it. */
  readonly key: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** With it the signature can be verified again without the payout's record; absent in lines of earlier versions. */
  readonly proof?: IntentProof | undefined;
  /** For how long its request may be on its way after it was journaled, ms. */
  readonly doubtMs?: number | undefined;
  /** Hash of the operator's act that allowed another attempt. */
  readonly act?: string | undefined;
  /** The earlier attempts that, as the verified act states, paid nothing. */
  readonly clears?: readonly number[] | undefined;
}

/** What came of a send, as its sender saw it. */
export type JournaledOutcome =
  | { readonly kind: 'accepted'; readonly txhash: string }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unknown'; readonly reason: string }
  /** It was journaled, and then not written after all. */
  | { readonly kind: 'not_sent'; readonly reason: string };

export interface OutcomeLine extends SendAttempt {
  readonly outcome: JournaledOutcome;
  /** Wall clock, ms. */
  readonly at: number;
}

/** Other journals that have sends of the same account: without them this one does not tell the whole. */
export interface PeersLine {
  readonly peers: readonly JournalPeer[];
}

export interface JournalPeer extends JournalPlace {
  readonly journalId: string;
}

/** What only format 3 knows, beside its header. */
export type ControlLine = CompleteLine | PausedLine | ResumedLine | SeenLine | RejectedLine | RatesLine;

/** The token alone does not tell attempts of format 1 apart. */
export function identify({ payoutId, attempt, token }: SendAttempt): string {
  return `${payoutId} ${attempt} ${token}`;
}

export type JournalLine =
  FormerHeaderLine | HeaderLine | JournaledLedger | PeersLine | SendLine | OutcomeLine | ControlLine;

/** Tells what only format 3 knows from sends and from what stands between them. */
export function isControlLine(line: JournalLine): line is ControlLine {
  if ('complete' in line) return !('v' in line);
  return 'paused' in line || 'resumed' in line || 'seen' in line || 'rejected' in line || 'rates' in line;
}

/** A send with what came of it, where that is known. */
export interface JournalEntry extends SendLine {
  readonly outcome?: JournaledOutcome | undefined;
  /** When that was noted, wall clock, ms; only of an entry that was read from disk. */
  readonly outcomeAt?: number | undefined;
}

/** What a whole journal is read as: its sends with their outcomes, and what stands between them. */
export type JournalItem = JournalEntry | JournaledLedger | PeersLine;
