import { systemClock } from '../../clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import { isFiltered, matchesHeld, type HeldQuery } from './held-query.js';

/** One page of held payouts, the one that was held first at the top. */
export interface HeldPage {
  readonly payouts: readonly Payout[];
  /** Why the records of others cannot be read. */
  readonly unreadable: readonly string[];
  /** The `after` of the next page; undefined at the end. */
  readonly next: string | undefined;
  /** How many were read for it. */
  readonly searched: number;
}

/** A page has at least as many, where there are: it ends with the step in which it became full. */
const ON_PAGE = 50;
const STEP = 100;
/** Nobody waits for a page much longer; the next one continues where this one stopped. */
const SEARCH_MS = 1_500;

/** @throws RedisUnavailableError */
export async function findHeld(
  connection: LedgerConnection,
  { filter, after }: HeldQuery,
  searchMs = SEARCH_MS,
): Promise<HeldPage> {
  const until = systemClock.now() + searchMs;
  const limit = isFiltered(filter) ? STEP : ON_PAGE;
  const [payouts, unreadable]: [Payout[], string[]] = [[], []];
  let searched = 0;
  let next = after;
  do {
    const page = await listPayoutIds(connection, { state: 'held', limit, ...(next !== undefined && { cursor: next }) });
    const read = await readReadable(connection, page.payoutIds, ({ message }) => unreadable.push(message));
    // One that was released between the two reads is held no more.
    payouts.push(...read.filter(({ state, held }) => state === 'held' && matchesHeld(held, filter)));
    searched += page.payoutIds.length;
    next = page.next;
  } while (next !== undefined && payouts.length < ON_PAGE && systemClock.now() < until);
  return { payouts, unreadable, next, searched };
}
