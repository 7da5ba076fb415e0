import { isAborted, type Clock } from '../clock.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { Logger } from '../logger.js';

export interface OpenJournalOptions {
  /** @throws Error when it cannot be read or written */
  readonly openJournal: () => Promise<SendJournal>;
  /** Told why it could not be opened, each time. */
  readonly onTrouble: (message: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A journal that could not be opened is tried again after this time. */
const OPEN_AGAIN_MS = 3_000;

/**
 * Opens a journal, however often it takes: the broken journal of one account blocks no other account.
 * @returns undefined where the signal was aborted before
 */
export async function openJournalPatiently(
  { openJournal, onTrouble, clock, logger }: OpenJournalOptions,
  stop: AbortSignal,
): Promise<SendJournal | undefined> {
  let trouble: string | undefined;
  while (!isAborted(stop)) {
    try {
      return await openJournal();
    } catch (error) {
      const { message } = error as Error;
      if (message !== trouble) logger.error({ error: message }, 'nothing is sent without the send journal');
      onTrouble((trouble = message));
      await clock.sleep(OPEN_AGAIN_MS, stop);
    }
  }
  return undefined;
}
