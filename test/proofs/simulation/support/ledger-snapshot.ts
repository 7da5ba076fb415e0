import type { Clock } from '../../../../src/clock.js';
import type { Objection } from '../../../../src/ledger/objections.js';
import type { KnownJournal, LeaseView } from '../../../../src/ledger/sender-ledger.js';
import { PayoutBook } from './payout-book.js';

/** Everything that the ledger holds. Opaque to callers: take one with `snapshot`, put it back with `restore`. */
export interface LedgerSnapshot {
  ledgerId: string | undefined;
  lease: LeaseView | undefined;
  sendCount: number;
  /** The token of the last send. */
  last: string;
  lastJournalId: string | undefined;
  inFlightMs: number;
  /** The token of the attempt that has no response. */
  awaitingAnswer: string;
  pausedReason: string | undefined;
  rejectionsInARow: number;
  unknownsInARow: number;
  /** The outcome that was counted last. */
  counted: string;
  journals: ReadonlyMap<string, KnownJournal>;
  objections: ReadonlyMap<string, Objection>;
  readonly book: PayoutBook;
}

/** What stands in the `sender` hash. */
export const NO_SENDER = {
  lease: undefined,
  sendCount: 0,
  last: '',
  lastJournalId: undefined,
  inFlightMs: 0,
  awaitingAnswer: '',
};

export function emptyLedger(clock: Pick<Clock, 'wallNow'>): LedgerSnapshot {
  return {
    ...NO_SENDER,
    ledgerId: undefined,
    pausedReason: undefined,
    rejectionsInARow: 0,
    unknownsInARow: 0,
    counted: '',
    journals: new Map(),
    objections: new Map(),
    book: new PayoutBook(clock),
  };
}
