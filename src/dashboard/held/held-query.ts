import type { Request } from 'express';
import { systemClock } from '../../base/clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { listPayoutIds, readReadable } from '../../ledger/payout-queries.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';

export interface HeldFilter {
  readonly kind?: string;
  readonly reason?: string;
  readonly rule?: string;
}

const FIELDS = ['kind', 'reason', 'rule'] as const;
/** No rule's name is longer. */
const LONGEST = 200;

export interface HeldQuery {
  readonly filter: HeldFilter;
  readonly after: string | undefined;
}

/** @returns undefined if the URL names an impossible page */
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

export function heldPath(filter: HeldFilter, after?: string): string {
  const params = new URLSearchParams({ ...filter, ...(after !== undefined && { after }) });
  return params.size === 0 ? '/held' : `/held?${params.toString()}`;
}

export function isFiltered(filter: HeldFilter): boolean {
  return Object.keys(filter).length > 0;
}

function matchesHeld(held: HeldFor | undefined, filter: HeldFilter): boolean {
  return FIELDS.every((field) => filter[field] === undefined || held?.[field] === filter[field]);
}

export interface HeldPage {
  readonly payouts: readonly Payout[];
  readonly unreadable: readonly string[];
  /** The `after` of the next page; undefined at the end. */
  readonly next: string | undefined;
  readonly searched: number;
}

/** The least number on a page, if there are enough: it ends with the step that fills it. */
const ON_PAGE = 50;
const STEP = 100;
/** Readers do not wait much longer. The next page continues here. */
const SEARCH_MS = 1_500;

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
    // Omit payouts released between the two reads.
    payouts.push(...read.filter(({ state, held }) => state === 'held' && matchesHeld(held, filter)));
    searched += page.payoutIds.length;
    next = page.next;
  } while (next !== undefined && payouts.length < ON_PAGE && systemClock.now() < until);
  return { payouts, unreadable, next, searched };
}
