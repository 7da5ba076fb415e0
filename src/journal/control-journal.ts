import type { RateAnchor, SpendEvent } from '../ledger/control-record.js';
import type { ActNote, PausedLine, RatesLine, RejectionNote, SeenLine } from './journal-line.js';
import type { SendJournal } from './send-journal.js';

/**
 * What control of money keeps in the send journal: without keys and a policy nothing of it is read or written. Times are
 * wall clock, ms. A returned promise resolves once the line is on disk.
 */
export interface ControlJournal extends Pick<SendJournal, 'bornAt' | 'lastSends'> {
  /**
   * Latest expiry (ms) of intents whose sends are forgotten, because their files were removed or too old to read. 0 for
   * none. An intent that expires by then may have been sent, whatever the clock says now.
   */
  readonly prunedUpTo: number;
  /** When the worker paused the account by itself. A signed act resumes it. */
  readonly pausedAt: number | undefined;
  readonly pausedReason: string | undefined;
  /**
   * Attempt numbers below `below` that may have paid. Excluded are attempts proved not sent, and those that a signed
   * act states as unpaid. A rejected one counts.
   */
  unclearedAttempts(payoutId: string, below: number): readonly number[];
  /** The gateway accepted this attempt, so no act makes it unpaid. */
  wasAccepted(payoutId: string, attempt: number): boolean;
  /** @param act - its SHA-256, hexadecimal */
  hasAct(act: string): boolean;
  seenAt(walletAndTag: string): number | undefined;
  /** Oldest first; lines that are read again are returned again. Empty unless the journal was opened for spends. */
  takeSpends(): readonly SpendEvent[];
  /** The verified rejections of a payout that nobody took back. */
  rejectionsOf(payoutId: string): readonly RejectionNote[];
  readonly rateAnchors: ReadonlyMap<number, RateAnchor>;
  noteRates(rates: RatesLine['rates']): Promise<void>;
  noteRejected(rejected: RejectionNote): Promise<void>;
  noteUnrejected(unrejected: Pick<RejectionNote, 'payoutId' | 'rejection'>): Promise<void>;
  noteSeen(seen: SeenLine['seen']): Promise<void>;
  notePaused(pause: PausedLine['paused']): Promise<void>;
  noteResumed(note: ActNote): Promise<void>;
}

/** A journal as a worker opens it: the promises need the first part, and control the second. */
export type AccountJournal = SendJournal & ControlJournal;
