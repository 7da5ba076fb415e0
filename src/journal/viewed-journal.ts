import type { RateAnchor, SpendEvent } from '../ledger/spend-event.js';
import type { SendAttempt } from '../ledger/sender-ledger.js';
import type { JournaledLedger, JournalEntry, JournalPeer, RejectionNote, SignedIntent } from './journal-line.js';
import type { JournalView } from './journal-view.js';
import type { SendJournal } from './send-journal.js';

type Viewed = Pick<
  SendJournal,
  | 'ledger'
  | 'peers'
  | 'knows'
  | 'knowsFromAnother'
  | 'lastSends'
  | 'bornAt'
  | 'prunedUpTo'
  | 'pausedAt'
  | 'pausedReason'
  | 'unclearedAttempts'
  | 'wasAccepted'
  | 'hasAct'
  | 'seenAt'
  | 'rateAnchors'
  | 'rejectionOf'
  | 'takeSpends'
>;

/** The part of a send journal that answers from memory. */
export abstract class ViewedJournal implements Viewed {
  protected abstract get view(): JournalView;

  get ledger(): JournaledLedger | undefined {
    return this.view.ledger;
  }

  get peers(): readonly JournalPeer[] {
    return this.view.peers;
  }

  get bornAt(): number {
    return this.view.control.bornAt;
  }

  get prunedUpTo(): number {
    return this.view.control.prunedUpTo;
  }

  get pausedAt(): number | undefined {
    return this.view.control.pause?.at;
  }

  get pausedReason(): string | undefined {
    return this.view.control.pause?.reason;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.view.knows(payoutId, attempt);
  }

  knowsFromAnother(attempt: SendAttempt): boolean {
    return this.view.knowsFromAnother(attempt);
  }

  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.view.wasAccepted(payoutId, attempt);
  }

  unclearedAttempts(payoutId: string, below: number): readonly number[] {
    return this.view.unclearedAttempts(payoutId, below);
  }

  seenAt(walletAndTag: string): number | undefined {
    return this.view.control.seenAt(walletAndTag);
  }

  get rateAnchors(): ReadonlyMap<number, RateAnchor> {
    return this.view.control.rateAnchors;
  }

  rejectionOf(intent: SignedIntent): RejectionNote | undefined {
    return this.view.control.rejectionOf(intent);
  }

  takeSpends(): readonly SpendEvent[] {
    return this.view.control.takeSpends();
  }

  hasAct(act: string): boolean {
    return this.view.control.hasAct(act);
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return this.view.lastSends(limit);
  }
}
