import type { Request } from 'express';
import { systemClock } from '../../base/clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';

/** Which held payouts a page shows, as it stands in the URL; all, where nothing is said. */
export interface HeldFilter {
  readonly kind?: string;
  readonly reason?: string;
  readonly rule?: string;
}

const FIELDS = ['kind', 'reason', 'rule'] as const;
/** No name of a rule is longer. */
const LONGEST = 200;

export interface HeldQuery {
  readonly filter: HeldFilter;
  /** Where the page begins. */
  readonly after: string | undefined;
}

/** @returns undefined where the URL names a page that cannot be */
export function readHeldQuery(query: Request['query']): HeldQuery | undefined {
  const { after } = query;
  if (after !== undefined && !(typeof after === 'string' && /^\d{1,16}$/.test(after))) return undefined;
  const filter: Record<string, string> = {};
  for (const field of FIELDS) {
    const given = query[field];
    if (given === undefined || given === '') continue;
    if (typeof given !== 'string' || given.length > LONGEST) return undefined;
    filter[field] = given;
  }
  return { filter, after };
}

/** Where these are, seen from the pages of the account. */
export function heldPath(filter: HeldFilter, after?: string): string {
  const params = new URLSearchParams({ ...filter, ...(after !== undefined && { after }) });
  return params.size === 0 ? '/held' : `/held?${params.toString()}`;
}

export function isFiltered(filter: HeldFilter): boolean {
  return Object.keys(filter).length > 0;
}

/** Whether a hold is one of those. */
function matchesHeld(held: HeldFor | undefined, filter: HeldFilter): boolean {
  return FIELDS.every((field) => filter[field] === undefined || held?.[field] === filter[field]);
}

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
