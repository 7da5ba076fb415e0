import type { SentOutcome } from '../../gateway/gateway.js';
import { identify, type SendLine } from '../../journal/journal-line.js';
import type { ReadableJournal } from '../../journal/send-journal.js';
import type { SendAttempt, SenderView } from '../../ledger/sender-ledger.js';

/** The number of sends that a ledger has seen, and the last one's token. */
export interface LineOfSends {
  readonly sendCount: number;
  readonly last: string;
}

interface FinishedSend {
  readonly attempt: SendAttempt;
  readonly outcome: SentOutcome;
}

/**
 * What a sender knows of its own sends while it holds a lease, in the order of an attempt's life: begun in the ledger,
 * in the journal, written, finished. The sends, the recovery and the comparison with the ledger ask this one object.
 */
export class OwnSends {
  /** Written last, on the clock's scale. */
  lastWriteAt: number | undefined;
  /** Since when no response could be trusted, on the clock's scale: the gateway is probed before the next payout. */
  silentSince: number | undefined;
  /** Recorded again later: a Redis that comes back older may have lost it. */
  lastFinished: FinishedSend | undefined;
  #line: LineOfSends;
  #after: SendLine['after'];
  #current: SendAttempt | undefined;
  /** By identity: those that were certainly not written. The ledger may have one as `sending` whose begin got no reply. */
  readonly #unwritten = new Map<string, SendAttempt>();

  /** @param now - on the clock's scale */
  constructor(view: SenderView, journal: Pick<ReadableJournal, 'journalId' | 'ledger'>, now: number) {
    const { sendCount, last, lastJournalId, awaitingAnswer } = view;
    this.#line = { sendCount, last };
    this.#after =
      lastJournalId === journal.journalId && journal.ledger !== undefined
        ? { sends: journal.ledger.sends, token: journal.ledger.token }
        : { sends: sendCount, token: last };
    this.silentSince = awaitingAnswer ? now : undefined;
  }

  /** As this process began them. A new object after each begin. */
  get line(): LineOfSends {
    return this.#line;
  }

  /** An earlier begin of this process took effect after its reply was lost. */
  takeLine(line: LineOfSends): void {
    this.#line = line;
  }

  /** The send before the next one, as the journal names it. */
  get after(): SendLine['after'] {
    return this.#after;
  }

  /** The ledger is about to be asked. */
  begin(attempt: SendAttempt): void {
    this.#current = attempt;
    this.trackUnwritten(attempt);
  }

  /** The ledger has it. Earlier ones cannot take effect any more: they named another last send. */
  begun(attempt: SendAttempt, sendCount: number): void {
    this.#unwritten.clear();
    this.trackUnwritten(attempt);
    this.#line = { sendCount, last: attempt.token };
  }

  /** The journal has it. */
  journaled(attempt: SendAttempt): void {
    this.#after = { sends: this.#line.sendCount, token: attempt.token };
  }

  /** It is about to be written, or another sender may have sent it: only an outcome decides from now on. */
  release(attempt: SendAttempt): void {
    this.#unwritten.delete(identify(attempt));
  }

  /** Its begin may still take effect in Redis. */
  trackUnwritten(attempt: SendAttempt): void {
    this.#unwritten.set(identify(attempt), attempt);
  }

  /** No attempt is in hand. */
  clearCurrent(): void {
    this.#current = undefined;
  }

  get hasCurrent(): boolean {
    return this.#current !== undefined;
  }

  isCurrent(attempt: SendAttempt): boolean {
    return this.#current !== undefined && identify(attempt) === identify(this.#current);
  }

  isUnwritten(attempt: SendAttempt): boolean {
    return this.#unwritten.has(identify(attempt));
  }

  hasUnwrittenToken(token: string): boolean {
    return [...this.#unwritten.values()].some((attempt) => attempt.token === token);
  }
}
