import type { SendAttempt } from '../ledger/sender-ledger.js';
import type { JournaledLedger, JournalEntry, JournalPeer } from './journal-line.js';
import type { JournalView } from './journal-view.js';
import type { SendJournal } from './send-journal.js';

type Viewed = Pick<SendJournal, 'ledger' | 'peers' | 'knows' | 'knowsFromAnother' | 'lastSends'>;

/** What a send journal says from memory: the lines that this process has read or written. */
export abstract class ViewedJournal implements Viewed {
  protected abstract get view(): JournalView;

  get ledger(): JournaledLedger | undefined {
    return this.view.ledger;
  }

  get peers(): readonly JournalPeer[] {
    return this.view.peers;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.view.knows(payoutId, attempt);
  }

  knowsFromAnother(attempt: SendAttempt): boolean {
    return this.view.knowsFromAnother(attempt);
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return this.view.lastSends(limit);
  }
}
