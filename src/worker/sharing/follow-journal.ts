import { isAborted, type Clock } from '../../clock.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { Logger } from '../../logger.js';

export interface FollowJournalOptions {
  readonly journal: Pick<SendJournal, 'reload'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is read is the same however often: seldom only spares looking at the folder. */
const FOLLOW_EVERY_MS = 5 * 60_000;

/**
 * Reads what another process adds to a journal that this one shares, until the signal is aborted. Where nobody looked until
 * the file that was read last is removed, since it is old, the journal looks as if it had been exchanged, and is refused. And
 * a takeover that first reads the sends of weeks would be late.
 */
export async function followJournal({ journal, clock, logger }: FollowJournalOptions, end: AbortSignal): Promise<void> {
  while (!isAborted(end)) {
    try {
      await journal.reload();
    } catch (error) {
      // Who is to send reads it again, and refuses it then.
      logger.debug({ error: (error as Error).message }, 'cannot follow the send journal');
    }
    await clock.sleep(FOLLOW_EVERY_MS, end);
  }
}
