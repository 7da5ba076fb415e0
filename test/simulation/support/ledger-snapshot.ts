import type { Clock } from '../../../src/clock.js';
import type { LeaseView } from '../../../src/ledger/sender-ledger.js';
import { PayoutBook } from './payout-book.js';

/** Everything that the ledger holds. Opaque to callers: take one with `snapshot`, put it back with `restore`. */
export interface LedgerSnapshot {
  ledgerId: string | undefined;
  lease: LeaseView | undefined;
  sends: number;
  /** The attempt that has no answer, as `payoutId attempt`. */
  unanswered: string;
  pausedReason: string | undefined;
  pausedBy: string | undefined;
  rejectionsInARow: number;
  unknownsInARow: number;
  readonly book: PayoutBook;
}

export function emptyLedger(clock: Pick<Clock, 'wallNow'>): LedgerSnapshot {
  return {
    ledgerId: undefined,
    lease: undefined,
    sends: 0,
    unanswered: '',
    pausedReason: undefined,
    pausedBy: undefined,
    rejectionsInARow: 0,
    unknownsInARow: 0,
    book: new PayoutBook(clock),
  };
}
