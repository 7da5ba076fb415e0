import type { Request } from 'express';
import { z } from 'zod';
import { DAY_MS, systemClock } from '../../base/clock.js';
import { amountField, payoutIdField } from '../../base/fields.js';
import { findPayouts, listPayouts, type PayoutFilter, type UnreadablePayout } from '../../ledger/payout-queries.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { batchField, lineField, type Payout } from '../../ledger/payout.js';
import { FINAL_STATES, isPayoutState, PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';

/** A list's filters, as in its URL and form. Days are whole days in UTC. */

const dayField = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a day such as 2030-01-31')
  .refine(isDay, 'must be a day that exists');

/** JavaScript turns the 31st of February into a day in March. */
function isDay(text: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

const RULES = {
  id: payoutIdField,
  state: z.enum(PAYOUT_STATES as readonly [PayoutState, ...PayoutState[]], 'must be a state'),
  batch: batchField,
  address: z
    .string()
    .trim()
    .regex(/^\S{1,256}$/, 'must be a wallet, without spaces'),
  reference: lineField,
  amount: z.string().transform(withoutGroups).pipe(amountField),
  since: dayField,
  until: dayField,
} as const;

const LIST_FIELDS = Object.keys(RULES) as readonly ListField[];
export type ListField = keyof typeof RULES;

export interface ListQuery {
  /** The given texts, also unusable ones. */
  readonly texts: Readonly<Partial<Record<ListField, string>>>;
  readonly problems: Readonly<Partial<Record<ListField, string>>>;
  readonly filter: PayoutFilter;
  readonly after: string | undefined;
}

/** @returns undefined if the URL names no list field, or an impossible page */
export function readListQuery(query: Request['query']): ListQuery | undefined {
  const { after } = query;
  if (after !== undefined && !(typeof after === 'string' && /^\d{1,16}$/.test(after))) return undefined;
  const texts: Partial<Record<ListField, string>> = {};
  const problems: Partial<Record<ListField, string>> = {};
  const values: Partial<Record<ListField, string>> = {};
  for (const field of LIST_FIELDS) {
    const given = query[field];
    if (typeof given !== 'string' || given.trim() === '') continue;
    texts[field] = given.trim();
    const parsed = RULES[field].safeParse(given.trim());
    if (parsed.success) values[field] = parsed.data;
    else problems[field] = parsed.error.issues[0]?.message ?? 'is not valid';
  }
  return { texts, problems, filter: toFilter(values), after };
}

function toFilter({ id, since, until, state, ...rest }: Partial<Record<ListField, string>>): PayoutFilter {
  return {
    ...rest,
    idPrefix: id,
    state: state as PayoutState | undefined,
    since: since === undefined ? undefined : Date.parse(since),
    // The last day is included.
    until: until === undefined ? undefined : Date.parse(until) + DAY_MS,
  };
}

/** A list's path below the account's pages. `state=` alone lists all payouts. */
export function listPath(texts: ListQuery['texts'], after?: string): string {
  return `/payouts?${toSearchParams(texts, after).toString()}`;
}

export function csvPath(texts: ListQuery['texts']): string {
  return `/payouts.csv?${toSearchParams(texts).toString()}`;
}

function toSearchParams(texts: ListQuery['texts'], after?: string): URLSearchParams {
  const params = new URLSearchParams({ state: '', ...texts });
  if (after !== undefined) params.set('after', after);
  return params;
}

/** Whether the list is an index of the ledger (a state or a batch), which needs no search. */
export function isIndex({ texts }: ListQuery): boolean {
  const [field, ...others] = Object.keys(texts);
  return (field === 'state' || field === 'batch') && others.length === 0;
}

/** A shorter text without spaces is more likely part of a reference. */
const SHORTEST_ADDRESS = 20;

/**
 * Interprets a search text that names no payout, payment or batch. It may be an amount (also with a currency as pages
 * show it), a day, a state, or an address. Otherwise it is part of a reference.
 */
export function understandSearch(text: string, currencies: readonly Currency[]): ListQuery['texts'] {
  const currency = currencies.find(({ name }) => text.endsWith(` ${name}`));
  const shown = currency === undefined ? text : text.slice(0, -currency.name.length).trim();
  const amount = withoutGroups(shown);
  if (amountField.safeParse(amount).success) return { amount };
  if (isDay(text)) return { since: text, until: text };
  const state = text.toLowerCase().replaceAll(' ', '_');
  if (isPayoutState(state)) return { state };
  if (text.length >= SHORTEST_ADDRESS && !/\s/.test(text)) return { address: text };
  return { reference: text };
}

/** As pages show an amount: `12,345.5`. */
function withoutGroups(amount: string): string {
  return /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(amount) ? amount.replaceAll(',', '') : amount;
}

export interface ListedPayouts {
  readonly payouts: readonly Payout[];
  readonly unreadable: readonly UnreadablePayout[];
  /** The `after` of the next page; undefined at the end. */
  readonly next: string | undefined;
  /** How many payouts were read for it; undefined if none was skipped. */
  readonly searched: number | undefined;
}

export const LISTED_ON_PAGE = 50;

/** Readers do not wait much longer. The next page continues here. */
const SEARCH_MS = 1_500;

/** Final payouts are listed newest first. In other states, the longest wait matters most. */
export function isNewestFirst(state: PayoutState | undefined): boolean {
  return state !== undefined && FINAL_STATES.includes(state);
}

/** Reads a page of an index, or else searches for at most 1.5 s. */
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
  const [payouts, unreadable]: [Payout[], UnreadablePayout[]] = [[], []];
  let searched = 0;
  let next = after;
  do {
    const found = await findPayouts(connection, filter, limit - payouts.length - unreadable.length, next);
    payouts.push(...found.payouts);
    unreadable.push(...found.unreadable);
    searched += found.searched;
    next = found.next;
  } while (next !== undefined && payouts.length + unreadable.length < limit && systemClock.now() < until);
  return { payouts, unreadable, next, searched };
}
