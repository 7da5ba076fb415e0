import { systemClock } from '../../clock.js';
import { findPayouts } from '../../ledger/find-payouts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Payout } from '../../ledger/payout.js';
import { listPayouts } from '../../ledger/payout-queries.js';
import { FINAL_STATES, type PayoutState } from '../../ledger/states.js';
import { isIndex, type ListQuery } from './list-query.js';

/** One page of a list. */
export interface ListedPayouts {
  readonly payouts: readonly Payout[];
  /** The `after` of the next page; undefined at the end. */
  readonly next: string | undefined;
  /** How many payouts were read for it; undefined where none had to be passed over. */
  readonly searched: number | undefined;
}

/** Payouts of a page of a list. */
export const LISTED_ON_PAGE = 50;

/** Nobody waits for a page much longer; the next one continues where this one stopped. */
const SEARCH_MS = 1_500;

/** Final payouts are listed newest first; of the others of a state, the one that waits longest matters most. */
export function isNewestFirst(state: PayoutState | undefined): boolean {
  return state !== undefined && FINAL_STATES.includes(state);
}

/** Reads a page of a list: of an index as it stands there, else by searching for at most 1.5 s. */
export async function findListed(
  connection: LedgerConnection,
  query: ListQuery,
  { limit, searchMs = SEARCH_MS }: { readonly limit: number; readonly searchMs?: number },
): Promise<ListedPayouts> {
  const { filter, after } = query;
  if (isIndex(query)) {
    const { state, batch } = filter;
    const index = batch === undefined ? { state: state ?? 'queued' } : { batch };
    const cursor = after === undefined ? {} : { cursor: after };
    const page = await listPayouts(connection, { ...index, ...cursor, limit, newestFirst: isNewestFirst(state) });
    return { ...page, searched: undefined };
  }
  const until = systemClock.now() + searchMs;
  const payouts: Payout[] = [];
  let searched = 0;
  let next = after;
  do {
    const found = await findPayouts(connection, filter, { limit: limit - payouts.length, after: next });
    payouts.push(...found.payouts);
    searched += found.searched;
    next = found.next;
  } while (next !== undefined && payouts.length < limit && systemClock.now() < until);
  return { payouts, next, searched };
}
