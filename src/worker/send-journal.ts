import type { SendAttempt, SenderLedger, SenderView } from '../ledger/sender-ledger.js';
import type { WithdrawRequest } from '../gateway/withdraw-gateway.js';

/**
 * The second witness of what was sent, outside Redis. If Redis comes back older than it was, a payout that the journal
 * says was sent is not sent again.
 */
export interface SendJournal {
  /** What the journal knows of the ledger; undefined while it is empty. */
  readonly ledger: JournaledLedger | undefined;
  /** True when this very attempt is in the journal. */
  knows(payoutId: string, attempt: number): boolean;
  /** The newest sends, the last one at the end. */
  lastSends(limit: number): readonly JournaledSend[];
  /** Notes with which ledger the sends that follow are made. Resolves once it is on disk. */
  bind(ledger: JournaledLedger): Promise<void>;
  /** Notes a send that is about to be written. Resolves once it is on disk. */
  append(send: JournaledSend): Promise<void>;
  /**
   * True when another process has added to the journal since this one last read it or added to it: either a sender of
   * earlier, which was stopped in between, or one that had the lease since, so that the ledger came back older.
   */
  changedByOthers(): Promise<boolean>;
  /** Reads again what another process may have added. */
  reload(): Promise<void>;
  /**
   * After a failed write: tries whether writing works again, and reads the journal again.
   * @throws Error when it does not
   */
  ensureWritable(): Promise<void>;
  close(): Promise<void>;
}

/** The part of a journal that says what was sent. */
export type JournalView = Pick<SendJournal, 'ledger' | 'lastSends'>;

export interface JournaledLedger {
  readonly ledgerId: string;
  /** The highest epoch seen. */
  readonly epoch: number;
  /** The number of sends begun in the ledger, the last journaled one included. */
  readonly sends: number;
}

/** One send, with all that is needed to make its payout known again to a ledger that forgot it. */
export interface JournaledSend extends SendAttempt {
  readonly sends: number;
  readonly request: WithdrawRequest;
  /** Wall clock, ms. */
  readonly at: number;
}

const RECENT_SENDS = 100;

/** A payout that is missing from the ledger may have been removed by retention, which keeps them for a day at least. */
const RETENTION_MIN_MS = 24 * 60 * 60 * 1000;

/**
 * Holds the journal against the ledger that is there.
 * @param wallNow - wall clock, ms
 * @returns why this ledger must not be sent from, or undefined when the two agree
 */
export async function findDisagreement(
  journal: JournalView,
  view: SenderView,
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
  wallNow: number,
): Promise<string | undefined> {
  const known = journal.ledger;
  if (known === undefined) return undefined;
  if (known.ledgerId !== view.ledgerId) {
    return `This Redis holds another ledger (${view.ledgerId}) than the send journal knows (${known.ledgerId}): it was flushed or exchanged.`;
  }
  const epoch = view.lease?.epoch ?? 0;
  if (epoch < known.epoch) return olderCopy(`its lease epoch is ${epoch}, the journal has seen ${known.epoch}`);
  if (view.sends < known.sends) return olderCopy(`it knows ${view.sends} sends, the journal ${known.sends}`);
  const forgotten = await ledger.findForgottenSends(journal.lastSends(RECENT_SENDS));
  const missed = forgotten.find(({ send, state }) => state !== undefined || send.at > wallNow - RETENTION_MIN_MS);
  if (missed !== undefined) {
    const { payoutId, attempt } = missed.send;
    return olderCopy(`it does not know that payout ${payoutId} was sent (attempt ${attempt})`);
  }
  return undefined;
}

function olderCopy(detail: string): string {
  return `This Redis holds an older copy of the ledger: ${detail}.`;
}

/** What a person has to do after {@link findDisagreement} found something. */
export const ADOPT_HINT =
  'Nothing is sent. Bring back the newest copy of the Redis data if there is one; else run `payouts adopt-ledger`, ' +
  'which turns every payout that the journal and the ledger disagree about into `unknown`.';
