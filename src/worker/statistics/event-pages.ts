import { isAborted } from '../../clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readEventsAfter, type StateEvent } from '../../ledger/state-events.js';

/** Small steps, so that a long stream takes no time from the sender. */
const PAGE = 500;
const PAUSE_MS = 50;

/**
 * Visits events page by page, with a pause after each.
 * @param after - the event behind which it begins
 * @param end - the last event; undefined for the newest
 * @returns false when it was stopped, or the stream does not have all of them
 * @throws RedisUnavailableError
 */
export async function visitEvents(
  connection: LedgerConnection,
  { after, end }: { readonly after: string; readonly end?: string },
  visit: (events: readonly StateEvent[]) => Promise<void> | void,
  signal: AbortSignal,
): Promise<boolean> {
  for (let last = after; last !== end;) {
    const page = await readEventsAfter(connection, last, PAGE);
    if (page === undefined || isAborted(signal)) return false;
    const endsAt = page.findIndex(({ eventId }) => eventId === end);
    const events = endsAt === -1 ? page : page.slice(0, endsAt + 1);
    await visit(events);
    last = events.at(-1)?.eventId ?? last;
    if (page.length < PAGE) return end === undefined || last === end;
    await connection.clock.sleep(PAUSE_MS, signal);
  }
  return true;
}
