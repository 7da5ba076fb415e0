import type { Clock } from '../../../src/base/clock.js';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import type { KnownJournal, Lease, LeaseView, Objection } from '../../../src/ledger/sender-ledger.js';
import { PayoutBook } from './payout-book.js';

/** Everything that the ledger holds. Opaque to callers: take one with `snapshot`, put it back with `restore`. */
export interface LedgerSnapshot {
  ledgerId: string | undefined;
  audience: string | undefined;
  lease: LeaseView | undefined;
  sendCount: number;
  /** The token of the last send. */
  last: string;
  lastJournalId: string | undefined;
  inFlightMs: number;
  /** The token of the attempt that has no response. */
  awaitingAnswer: string;
  pausedReason: string | undefined;
  resumeAct: string | undefined;
  adoptAct: string | undefined;
  rejectionsInARow: number;
  payoutRejectionsInARow: number;
  unknownsInARow: number;
  /** The outcome that was counted last. */
  counted: string;
  journals: ReadonlyMap<string, KnownJournal>;
  objections: ReadonlyMap<string, Objection>;
  /** What was spent where a policy counts. */
  spent: readonly SpendEvent[];
  /** Payouts of which someone said something since. */
  recheck: ReadonlySet<string>;
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
    audience: undefined,
    pausedReason: undefined,
    resumeAct: undefined,
    adoptAct: undefined,
    rejectionsInARow: 0,
    payoutRejectionsInARow: 0,
    unknownsInARow: 0,
    counted: '',
    journals: new Map(),
    objections: new Map(),
    spent: [],
    recheck: new Set(),
    book: new PayoutBook(clock),
  };
}

/** @returns false when the account was paused already; the first reason stays */
export function pauseAccount(all: LedgerSnapshot, reason: string): boolean {
  if (all.pausedReason !== undefined) return false;
  all.pausedReason = reason;
  return true;
}

/** The last attempt has its response, if it is this one. */
export function noteResponse(all: LedgerSnapshot, token: string): void {
  if (all.awaitingAnswer === token) all.awaitingAnswer = '';
}

/** What came of a send that counts where a policy counts. */
export function noteSpent(all: LedgerSnapshot, token: string, kind: 'accepted' | 'unpaid', at: number): void {
  const begun = all.spent.find((event) => event.kind === 'begun' && event.spend.id.endsWith(` ${token}`));
  if (begun?.kind !== 'begun') return;
  const { id } = begun.spend;
  all.spent = [...all.spent, kind === 'accepted' ? { kind, id, at } : { kind, id }];
}

export function noteJournal(all: LedgerSnapshot, journal: KnownJournal): void {
  all.journals = new Map([...all.journals, [journal.journalId, journal]]);
}

/** The lease, if it is this one and was not given back. */
export function heldBy(all: LedgerSnapshot, { owner, epoch }: Lease): LeaseView | undefined {
  const { lease } = all;
  return lease?.owner === owner && lease.epoch === epoch && !lease.released ? lease : undefined;
}
