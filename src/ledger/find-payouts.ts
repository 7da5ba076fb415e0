import { walletAndTagKey, walletKey } from '../gateway/wallet.js';
import type { PayoutIndex } from './keys.js';
import type { LedgerConnection } from './ledger-connection.js';
import type { Payout } from './payout.js';
import { readPayouts } from './payout-queries.js';
import { readIndex, readIndexes, type IndexEntry } from './state-index.js';
import { PAYOUT_STATES, type PayoutState } from './states.js';

/** A payout must match all given fields. */
export interface PayoutFilter {
  readonly state?: PayoutState | undefined;
  readonly batch?: string | undefined;
  /** The recipient's wallet, with or without its destination tag. */
  readonly address?: string | undefined;
  /** A part of the caller's reference; case does not matter. */
  readonly reference?: string | undefined;
  /** A decimal string without trailing zeros, as `amountField` returns it. */
  readonly amount?: string | undefined;
  /** Entered its present state at this time or later: ms since 1970. */
  readonly since?: number | undefined;
  /** Entered its present state before this time: ms since 1970. */
  readonly until?: number | undefined;
}

export interface FindOptions {
  readonly limit: number;
  readonly after?: string | undefined;
}

export interface FoundPayouts {
  readonly payouts: readonly Payout[];
  /** `after` of the next page; undefined at the end. */
  readonly next: string | undefined;
  /** Payouts read for this page. It may be short or empty, if few match, and still have a next one. */
  readonly searched: number;
}

/** A page takes some 200 ms at most, and keeps Redis busy for one command at a time. */
const SEARCHED_PER_PAGE = 5_000;
const STEP = 500;

/** How much the clocks of processes that change payouts may differ, for a search that begins in the middle. */
const CLOCK_MARGIN_MS = 10 * 60_000;

/**
 * Finds payouts, the latest change of state first; those of a batch by acceptance, the newest first. Addresses,
 * references and amounts have no index, so each page reads a bounded number of payouts. One that changes its state
 * between two pages may be missed or found twice.
 */
export async function findPayouts(
  connection: LedgerConnection,
  filter: PayoutFilter,
  { limit, after }: FindOptions,
): Promise<FoundPayouts> {
  const { keys } = connection;
  const { batch, state, since } = filter;
  let indexes =
    batch === undefined
      ? (state === undefined ? PAYOUT_STATES : [state]).map((name) => keys.stateIndex(name))
      : [keys.batchIndex(batch)];
  let from = after ?? (await findStart(connection, indexes, filter));
  const payouts: Payout[] = [];
  let searched = 0;
  while (searched < SEARCHED_PER_PAGE) {
    const entries = await readEntries(connection, indexes, from);
    const found = new Map((await readPayouts(connection, idsOf(entries))).map((payout) => [payout.payoutId, payout]));
    for (const { payoutId, place } of entries) {
      searched += 1;
      from = String(place);
      const payout = found.get(payoutId);
      if (payout === undefined || !matches(payout, filter)) continue;
      payouts.push(payout);
      if (payouts.length === limit) return { payouts, next: from, searched };
    }
    if (entries.length < STEP) return { payouts, next: undefined, searched };
    if (batch === undefined && since !== undefined && isOlder([...found.values()], since)) {
      // A payout that was put back unsent has its old place in the queue, and a new time.
      indexes = indexes.filter(({ sortedSet }) => sortedSet === keys.state('queued'));
      if (indexes.length === 0) return { payouts, next: undefined, searched };
    }
  }
  return { payouts, next: from, searched };
}

function idsOf(entries: readonly IndexEntry[]): string[] {
  return entries.map(({ payoutId }) => payoutId);
}

/** The highest places of several indexes, which share one counter. */
async function readEntries(
  connection: LedgerConnection,
  indexes: readonly PayoutIndex[],
  after: string | undefined,
): Promise<IndexEntry[]> {
  const entries = await readIndexes(connection, indexes, { after, limit: STEP, newestFirst: true });
  return entries
    .flat()
    .sort((one, other) => other.place - one.place)
    .slice(0, STEP);
}

function isOlder(payouts: readonly Payout[], since: number): boolean {
  return payouts.every(({ updatedAt }) => Date.parse(updatedAt) < since - CLOCK_MARGIN_MS);
}

export function matches(
  { state, batch, addressTo, reference, amount, updatedAt }: Payout,
  { since = -Infinity, until = Infinity, ...wanted }: PayoutFilter,
): boolean {
  const changedAt = Date.parse(updatedAt);
  return (
    (wanted.state === undefined || state === wanted.state) &&
    (wanted.batch === undefined || batch === wanted.batch) &&
    (wanted.address === undefined || hasAddress(addressTo, wanted.address)) &&
    (wanted.reference === undefined || reference?.toLowerCase().includes(wanted.reference.toLowerCase()) === true) &&
    (wanted.amount === undefined || amount === wanted.amount) &&
    changedAt >= since &&
    changedAt < until
  );
}

/** Without a destination tag a wallet matches all its tags. */
function hasAddress(addressTo: string, wanted: string): boolean {
  const sought = walletAndTagKey(wanted);
  return sought === walletAndTagKey(addressTo) || (sought === walletKey(wanted) && sought === walletKey(addressTo));
}

/** A binary search skips payouts that entered their state after `until`. */
async function findStart(
  connection: LedgerConnection,
  indexes: readonly PayoutIndex[],
  { batch, until }: PayoutFilter,
): Promise<string | undefined> {
  if (until === undefined || batch !== undefined) return undefined;
  const starts = await Promise.all(
    indexes.map(async (index) => findPlaceAt(connection, index, until + CLOCK_MARGIN_MS)),
  );
  return String(Math.max(...starts) + 1);
}

/** The newest payout that entered the index before a time; 0 without one. */
async function findPlaceAt(connection: LedgerConnection, index: PayoutIndex, time: number): Promise<number> {
  const newest = async (upTo: number): Promise<IndexEntry | undefined> =>
    (await readIndex(connection, index, { after: upTo + 1, limit: 1, newestFirst: true }))[0];
  let [low, high] = [0, (await newest(Number.MAX_SAFE_INTEGER - 1))?.place ?? 0];
  while (low < high) {
    const entry = await newest(Math.ceil((low + high) / 2));
    const [payout] = entry === undefined ? [] : await readPayouts(connection, [entry.payoutId]);
    // Up to here all entered before the time.
    if (payout === undefined || Date.parse(payout.updatedAt) < time) low = Math.ceil((low + high) / 2);
    else high = (entry?.place ?? 0) - 1;
  }
  return low;
}
