import type { RateAnchor, SpendEvent } from '../ledger/spend-event.js';
import type { JournalHead, JournalPlace, KnownJournal, SendAttempt } from '../ledger/sender-ledger.js';
import type {
  ActNote,
  CompleteNote,
  JournaledLedger,
  JournaledOutcome,
  SendLine,
  JournalEntry,
  JournalPeer,
  PausedLine,
  RatesLine,
  RejectionNote,
  SeenLine,
  SignedIntent,
} from './journal-line.js';

/**
 * A second record of what was sent, outside Redis. If Redis comes back older than it was, a payout that the journal has
 * as sent is not sent again.
 */
export interface SendJournal extends ReadableJournal {
  /**
   * Whether the disk has not answered for long: from then on, and until it does, every call but `noteOutcome` rejects at once. A
   * send whose `append` was rejected may be written later; so may its outcome, behind it.
   */
  readonly isStalled: boolean;
  /** Whether the attempt of this number was sent, or may have been, by any sender. */
  knows(payoutId: string, attempt: number): boolean;
  /** Whether another sender journaled the attempt of the same number: it may have been sent. */
  knowsFromAnother(attempt: SendAttempt): boolean;
  /**
   * When this journal began, wall clock, ms: what was sent before may be unknown to it. 0 where an operator stated that
   * nothing is missing.
   */
  readonly bornAt: number;
  /**
   * Until when the intents of sends may be valid (ms) that are forgotten: their files were removed, or too old to be read; 0 for
   * none. An intent that expires until then may have been sent, whatever the clock says now.
   */
  readonly prunedUpTo: number;
  /** The newest line that this process has read or written; undefined where no line has a hash. */
  readonly head: JournalHead | undefined;
  /** When the worker paused the account by itself (wall clock, ms), until a signed act resumes it. */
  readonly pausedAt: number | undefined;
  /** Why; undefined while it is not paused. */
  readonly pausedReason: string | undefined;
  /**
   * The numbers below `below` of the payout's attempts that may have paid: all that were journaled, but for those that turned
   * out as not sent and those of which a signed act states that they paid nothing. A rejected one counts.
   */
  unclearedAttempts(payoutId: string, below: number): readonly number[];
  /** Whether the gateway accepted this attempt: no act makes it unpaid. */
  wasAccepted(payoutId: string, attempt: number): boolean;
  /** Whether a signed act was used before. @param act - its SHA-256, hexadecimal */
  hasAct(act: string): boolean;
  /** When a payout to an address was seen first, wall clock, ms; undefined where none is known. */
  seenAt(walletAndTag: string): number | undefined;
  /**
   * What was spent, as lines say that were read or written since this was asked last, the oldest first. What was read again is
   * told again. Nothing where the journal was not opened for it.
   */
  takeSpends(): readonly SpendEvent[];
  /**
   * The verified rejection that says no to an intent and holds the longest, also one that has expired. A rejection also
   * counts for each earlier intent of the payout: an attacker may have kept its record, with approvals, and restore it.
   */
  rejectionOf(intent: SignedIntent): RejectionNote | undefined;
  /** By currency, the rates in dollars that later ones are held against. */
  readonly rateAnchors: ReadonlyMap<number, RateAnchor>;
  /** Notes such rates. Resolves once it is on disk. */
  noteRates(rates: RatesLine['rates']): Promise<void>;
  /** Notes a rejection that was verified. Resolves once it is on disk. */
  noteRejected(rejected: RejectionNote): Promise<void>;
  /** Notes addresses to which payouts are to be sent for the first time. Resolves once it is on disk. */
  noteSeen(seen: Pick<SeenLine['seen'], 'at' | 'addresses'>): Promise<void>;
  /** Notes that the worker stopped sending by itself. Resolves once it is on disk. */
  notePaused(pause: PausedLine['paused']): Promise<void>;
  /** Notes that a signed act ended the pause. Resolves once it is on disk. */
  noteResumed(note: ActNote): Promise<void>;
  /** Notes an operator's statement that nothing is missing before this journal began. Resolves once it is on disk. */
  noteComplete(note: CompleteNote): Promise<void>;
  /** Notes with which ledger the sends that follow are made. Resolves once it is on disk. */
  bind(ledger: JournaledLedger): Promise<void>;
  /** Notes other journals that have sends of the same account. Resolves once it is on disk. */
  notePeers(peers: readonly JournalPeer[]): Promise<void>;
  /** Notes a send that is about to be written. Resolves once it is on disk. */
  append(send: SendLine): Promise<void>;
  /**
   * Notes what came of a send. It is in the file at once and on disk soon after; the next send waits for neither, since the
   * ledger has it too. Never throws: what cannot be noted is `unknown` to a reader of the journal.
   */
  noteOutcome(attempt: SendAttempt, outcome: JournaledOutcome, at: number): void;
  /**
   * True when another process has added to the journal since this one last read it or added to it: either a sender of
   * earlier, which was stopped in between, or one that had the lease since, so that the ledger came back older. Also
   * when its file is gone.
   */
  changedByOthers(): Promise<boolean>;
  /**
   * Reads what another process may have added.
   * @throws JournalDamagedError when lines that were read before are gone
   * @throws UnsupportedFormatError, Error when it cannot be read
   */
  reload(): Promise<void>;
  /**
   * After a failed write: tries whether writing works again, and reads the journal again.
   * @throws JournalDamagedError, Error when it does not
   */
  ensureWritable(): Promise<void>;
  close(): Promise<void>;
}

/** The part of a journal that says what was sent. */
export interface ReadableJournal {
  /** The journal's own id, as the ledger knows it. */
  readonly journalId: string;
  /** Where its ledger stood; undefined while it is bound to none. */
  readonly ledger: JournaledLedger | undefined;
  /** Other journals that have sends of the same account, as far as they were noted recently. */
  readonly peers: readonly JournalPeer[];
  /** The newest sends, the last one at the end. */
  lastSends(limit: number): readonly JournalEntry[];
}

/** Lines are gone that a running process has read, or that other lines follow: a file was deleted, cut, replaced or altered. */
export class JournalDamagedError extends Error {}

/** A journal as the ledger notes it. @param at - wall clock, ms */
export function describeJournal(
  { journalId, ledger }: ReadableJournal,
  { host, dir }: JournalPlace,
  at: number,
): KnownJournal {
  return { journalId, host, dir, sends: ledger?.sends ?? 0, token: ledger?.token ?? '', at };
}
