import { every, within, type Clock } from '../clock.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { JournalHead } from '../ledger/sender-ledger.js';
import type { ToldHead } from '../ledger/tell-of-control.js';
import type { Logger } from '../logger.js';

export interface JournalHeadTellerOptions {
  readonly journal: Pick<SendJournal, 'head'>;
  /** Tells those who read the account's events. */
  readonly tell: (head: JournalHead) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const TELL_EVERY_MS = 10 * 60_000;

/** An unavailable Redis keeps no process from ending. */
const TELL_LAST_WITHIN_MS = 500;

/**
 * Tells those outside where the send journal ends: in the log and as an event. A chain of hashes shows what was altered, but not
 * that lines at the end were cut off, unless somebody else remembers the last one.
 */
export class JournalHeadTeller {
  readonly #options: JournalHeadTellerOptions;
  #told: ToldHead | undefined;
  /** The hash that was told last, and arrived. */
  #arrived: string | undefined;

  constructor(options: JournalHeadTellerOptions) {
    this.#options = options;
  }

  /** What this process told last, while it writes the journal. */
  get told(): ToldHead | undefined {
    return this.#told;
  }

  /** Tells it at once and every ten minutes, until the signal is aborted. Never in the way of a send. */
  async keep(end: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await every(TELL_EVERY_MS, async () => this.#tell(), { clock, signal: end, onError: this.#onError });
    this.#told = undefined;
  }

  /** Tells it once more where it has changed: the process has written its last line. */
  async tellLast(): Promise<void> {
    if (this.#options.journal.head?.hash === this.#arrived) return;
    await within(TELL_LAST_WITHIN_MS, this.#tell().catch(this.#onError));
  }

  /** The log has it, and the next one follows. */
  readonly #onError = ({ message }: Error): void => {
    this.#options.logger.debug({ error: message }, 'cannot tell the head of the send journal');
  };

  async #tell(): Promise<void> {
    const { journal, tell, clock, logger } = this.#options;
    const { head } = journal;
    if (head === undefined) return;
    const { hash, journalId, sends } = head;
    this.#told = { ...head, at: clock.wallNow() };
    logger.info({ head: hash, journalId, sends }, 'head of the send journal');
    await tell(head);
    this.#arrived = hash;
  }
}
