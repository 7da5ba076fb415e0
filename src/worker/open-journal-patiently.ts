import { followSignals, isAborted, type Clock } from '../clock.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { Logger } from '../logger.js';

export interface OpenJournalOptions {
  /** @throws Error if it cannot be read or written */
  readonly openJournal: () => Promise<SendJournal>;
  /** Called with the reason each time it cannot be opened. */
  readonly onTrouble: (message: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const OPEN_AGAIN_MS = 3_000;

/** Reading weeks of sends takes seconds; a hanging disk never ends it. */
const OPEN_WITHIN_MS = 30_000;

/**
 * Tries until it succeeds: one account's broken journal blocks no other account.
 * @returns undefined if the signal was aborted first
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
    // One at a time: each hanging call takes one of the process's few threads.
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
