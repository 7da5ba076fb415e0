import { followSignals, isAborted, type Clock } from '../clock.js';
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

/** Reading the sends of weeks takes seconds; a disk that hangs never ends it. */
const OPEN_WITHIN_MS = 30_000;

/**
 * Opens a journal, however often it takes: the broken journal of one account blocks no other account.
 * @returns undefined where the signal was aborted before
 */
export async function openJournalPatiently(
  { openJournal, onTrouble, clock, logger }: OpenJournalOptions,
  stop: AbortSignal,
): Promise<SendJournal | undefined> {
  let trouble: string | undefined;
  const note = (message: string): void => {
    if (message !== trouble) logger.error({ error: message }, 'nothing is sent without the send journal');
    onTrouble((trouble = message));
  };
  while (!isAborted(stop)) {
    // One at a time: each that hangs takes one of the few threads of the process.
    const opening = openJournal().catch((error: unknown) => error as Error);
    let opened = await untilOpened(opening, { clock, stop });
    while (opened === undefined && !isAborted(stop)) {
      note(
        `The send journal could not be opened within ${OPEN_WITHIN_MS / 1_000} s: its disk does not answer, or is slow.`,
      );
      opened = await untilOpened(opening, { clock, stop });
    }
    if (opened === undefined) return undefined;
    if (!(opened instanceof Error)) return opened;
    note(opened.message);
    await clock.sleep(OPEN_AGAIN_MS, stop);
  }
  return undefined;
}

async function untilOpened<Opened>(
  opening: Promise<Opened>,
  { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal },
): Promise<Opened | undefined> {
  const turn = followSignals(stop);
  try {
    return await Promise.race([opening, clock.sleep(OPEN_WITHIN_MS, turn.signal).then(() => undefined)]);
  } finally {
    turn.end();
  }
}
