import type { Request } from 'express';
import type { HeldFor } from '../../ledger/payout.js';

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
export function matchesHeld(held: HeldFor | undefined, filter: HeldFilter): boolean {
  return FIELDS.every((field) => filter[field] === undefined || held?.[field] === filter[field]);
}
