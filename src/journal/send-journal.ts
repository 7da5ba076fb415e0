import type { JournalHead, JournalLocation, KnownJournal, SendAttempt } from '../ledger/sender-ledger.js';
import type {
  ActsLine,
  JournaledLedger,
  JournaledOutcome,
  SendLine,
  JournalEntry,
  JournalPeer,
  ReplicasNote,
} from './journal-line.js';

/**
 * A second record of sends, outside Redis. If Redis comes back in an older state, a payout that the journal has as sent
 * is not sent again. Times are wall clock, ms. A returned promise resolves once the line is on disk.
 */
export interface SendJournal extends ReadableJournal {
  readonly knownReplicas: number;
  /**
   * Whether the disk has been silent for long. Until it answers, every call but `noteOutcome` rejects at once. A
   * rejected `append` may still be written later, followed by its outcome.
   */
  readonly isStalled: boolean;
  /** Whether any sender sent, or may have sent, this attempt number. */
  knows(payoutId: string, attempt: number): boolean;
  /** Another sender journaled this attempt number, and so may have sent it. */
  knowsFromAnother(attempt: SendAttempt): boolean;
  /** Earlier sends may be unknown. 0 if an operator stated that nothing is missing. */
  readonly bornAt: number;
  /** Newest line read or written. Undefined if there is none. */
  readonly head: JournalHead | undefined;
  /** Whether the journal has that a person or the application cancelled it, or wrote it off. */
  hasEnded(payoutId: string): boolean;
  noteActs(acts: ActsLine['acts']): Promise<void>;
  noteReplicas(replicas: ReplicasNote): Promise<void>;
  bind(ledger: JournaledLedger): Promise<void>;
  notePeers(peers: readonly JournalPeer[]): Promise<void>;
  append(send: SendLine): Promise<void>;
  /**
   * Stores the outcome of a send. The file has it at once, the disk soon after. The next send waits for neither,
   * because the ledger has it too. Never throws: a lost outcome reads as `unknown`.
   */
  noteOutcome(attempt: SendAttempt, outcome: JournaledOutcome, at: number): void;
  /**
   * Whether another process added lines since this one last read or wrote, or the file is gone. The other is an earlier
   * sender that was stopped, or a later holder of the lease. In the second case the ledger came back older.
   */
  changedByOthers(): Promise<boolean>;
  /**
   * @throws JournalDamagedError if lines read before are gone
   * @throws UnsupportedFormatError, Error if it cannot be read
   */
  reload(): Promise<void>;
  /**
   * Tests whether writing works again and rereads the journal.
   * @throws JournalDamagedError; Error if writing still fails
   */
  ensureWritable(): Promise<void>;
  close(): Promise<void>;
}

export interface ReadableJournal {
  readonly journalId: string;
  readonly ledger: JournaledLedger | undefined;
  /** How many acts of people the ledger counted when this journal last noted it, at a send or between two. */
  readonly acts: number;
  readonly peers: readonly JournalPeer[];
  /** How many replicas of Redis must have a send. Only an operator lowers it; absent or 0 if none was ever seen. */
  readonly knownReplicas?: number | undefined;
  lastSends(limit: number): readonly JournalEntry[];
}

/**
 * Lines are gone that a running process has read or that other lines follow. The file was deleted, cut, replaced or
 * altered.
 */
export class JournalDamagedError extends Error {}

export function describeJournal(
  { journalId, ledger, knownReplicas: replicas }: ReadableJournal,
  { host, dir }: JournalLocation,
  at: number,
): KnownJournal {
  const known = { journalId, host, dir, sends: ledger?.sends ?? 0, token: ledger?.token ?? '', at };
  return replicas === undefined || replicas === 0 ? known : { ...known, replicas };
}
