import type { KnownJournal, SenderLedger, SenderView } from '../ledger/sender-ledger.js';
import { wasSent } from './journal-view.js';
import type { ReadableJournal } from './send-journal.js';

export interface LedgerMismatch {
  readonly kind: 'ledger' | 'journal';
  readonly reason: string;
}

const COMPARED_SENDS = 100;

/**
 * A copy of what the journal says now. The ledger is read afterwards, so it also knows sends made in between. The live
 * journal may gain those sends at any time, and must not be compared.
 */
export function snapshotJournal(journal: ReadableJournal): ReadableJournal {
  const { journalId, ledger, acts, peers } = journal;
  const sends = journal.lastSends(COMPARED_SENDS);
  return { journalId, ledger, acts, peers, lastSends: (limit) => sends.slice(-limit) };
}

/**
 * Compares a journal with the ledger. They agree only if each knows the other's last sends by identity: equal counts
 * prove nothing.
 * @returns why this ledger must not be sent from, or undefined
 * @throws RedisUnavailableError
 */
export async function findMismatch(
  journal: ReadableJournal,
  view: SenderView,
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
): Promise<LedgerMismatch | undefined> {
  const known = journal.ledger;
  if (known === undefined) return undefined;
  const forgotten = await findForgottenSend(journal, ledger);
  // A different ledger with all sends of this journal, and the same count, was adopted with a copy of it.
  const isOther = known.ledgerId !== view.ledgerId;
  if (isOther && forgotten === undefined && view.sendCount >= known.sends) return undefined;
  if (isOther) {
    return missing(
      `This Redis holds another ledger (${view.ledgerId}) than the send journal knows (${known.ledgerId}): it was flushed or exchanged.`,
    );
  }
  if (forgotten !== undefined) return forgotten;
  const epoch = view.lease?.epoch ?? 0;
  if (epoch < known.epoch) return olderCopy(`its lease epoch is ${epoch}, the journal has seen ${known.epoch}`);
  if (view.sendCount < known.sends) return olderCopy(`it knows ${view.sendCount} sends, the journal ${known.sends}`);
  if (view.sendCount === known.sends && view.last !== '' && known.token !== '' && view.last !== known.token) {
    return olderCopy(`its send ${view.sendCount} differs from the journal's`);
  }
  if (view.acts < journal.acts) return olderCopy(describeLostActs(view.acts, journal.acts));
  const noted = view.journals.find(({ journalId }) => journalId === journal.journalId);
  if (noted === undefined || noted.sends <= known.sends) return undefined;
  return {
    kind: 'journal',
    reason: `The send journal lacks its last entries: it ends with send number ${known.sends}, the ledger knows that it had number ${noted.sends}.`,
  };
}

/**
 * @param journal - read before the ledger
 * @returns a mismatch if the ledger does not know one of the journal's newest sends
 * @throws RedisUnavailableError
 */
export async function findForgottenSend(
  journal: Pick<ReadableJournal, 'lastSends'>,
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
): Promise<LedgerMismatch | undefined> {
  const [forgotten] = await ledger.findForgottenSends(journal.lastSends(COMPARED_SENDS).filter(wasSent));
  if (forgotten === undefined) return undefined;
  const { payoutId, attempt } = forgotten.send;
  return olderCopy(`it does not know that payout ${payoutId} was sent (attempt ${attempt})`);
}

export function describeLostActs(acts: number, known: number): string {
  return `it knows ${acts} acts of people, such as cancellations and approvals, the journal ${known}`;
}

/** The ledger stores the entry before the current one. */
export function findOwnJournals({ journals, lastJournalId }: SenderView, host: string): readonly KnownJournal[] {
  return journals.filter((known) => known.host === host && (known.sends > 0 || known.journalId === lastJournalId));
}

export function describeLostJournal(own: readonly KnownJournal[], dir: string): string {
  const known = own.map(({ journalId, dir: location }) =>
    location === '' ? journalId : `${journalId} in ${location}`,
  );
  return `the ledger knows a journal of this host that has sends (${known.join(', ')}), but in ${dir} it is missing or empty`;
}

function olderCopy(detail: string): LedgerMismatch {
  return missing(`This Redis holds an older copy of the ledger: ${detail}.`);
}

function missing(reason: string): LedgerMismatch {
  return { kind: 'ledger', reason };
}
