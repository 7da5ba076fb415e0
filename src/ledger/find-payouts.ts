import { ask, pipelined, type LedgerConnection } from './ledger-connection.js';
import type { Payout } from './payout.js';
import { readPayouts } from './payout-queries.js';
import { PAYOUT_STATES, type PayoutState } from './states.js';

/** What payouts must have in common to be found; all of it, where several are given. */
export interface PayoutFilter {
  readonly state?: PayoutState | undefined;
  readonly batch?: string | undefined;
  /** The recipient's wallet, with its destination tag or without. */
  readonly address?: string | undefined;
  /** A part of the caller's reference, in capitals or not. */
  readonly reference?: string | undefined;
  /** A decimal string without trailing zeros, as `amountField` returns it. */
  readonly amount?: string | undefined;
  /** Came into its present state at this time or later: ms since 1970. */
  readonly since?: number | undefined;
  /** Came into its present state before this time: ms since 1970. */
  readonly until?: number | undefined;
}

export interface FindOptions {
  /** The most payouts of a page. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string | undefined;
}

export interface FoundPayouts {
  readonly payouts: readonly Payout[];
  /** The `after` of the next page; undefined where all were searched. */
  readonly next: string | undefined;
  /** How many were read for this page: it may be short, or empty, where few match, and still have a next one. */
  readonly searched: number;
}

/** Payouts read for one page: it lasts some 200 ms at most, and Redis is never busy with it for longer than a command. */
const SEARCHED_PER_PAGE = 5_000;
const STEP = 500;

/** By how much the clocks of processes that change payouts may differ, for a search that begins in the middle. */
const CLOCK_MARGIN_MS = 10 * 60_000;

interface Place {
  readonly payoutId: string;
  readonly score: number;
}

/**
 * Finds payouts, those first that came into their present state last; those of a batch in the order of acceptance, the newest
 * first. There is no index of addresses, references or amounts: it reads one payout after another, a bounded number for each
 * page. A payout that changes its state between two pages may be missed, or found twice.
 * @throws RedisUnavailableError
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
      ? (state === undefined ? PAYOUT_STATES : [state]).map((name) => keys.state(name))
      : [keys.batch(batch)];
  let from = after ?? (await findStart(connection, indexes, filter));
  const payouts: Payout[] = [];
  let searched = 0;
  while (searched < SEARCHED_PER_PAGE) {
    const places = await readPlaces(connection, indexes, from);
    const found = new Map((await readPayouts(connection, idsOf(places))).map((payout) => [payout.payoutId, payout]));
    for (const { payoutId, score } of places) {
      searched += 1;
      from = String(score);
      const payout = found.get(payoutId);
      if (payout === undefined || !matches(payout, filter)) continue;
      payouts.push(payout);
      if (payouts.length === limit) return { payouts, next: from, searched };
    }
    if (places.length < STEP) return { payouts, next: undefined, searched };
    if (batch === undefined && since !== undefined && isOlder([...found.values()], since)) {
      // One that was put back without having been sent has its old place among the queued, and a new time.
      indexes = indexes.filter((index) => index === keys.state('queued'));
      if (indexes.length === 0) return { payouts, next: undefined, searched };
    }
  }
  return { payouts, next: from, searched };
}

function idsOf(places: readonly Place[]): string[] {
  return places.map(({ payoutId }) => payoutId);
}

/** The next places of several indexes, which share one counter: the highest first. */
async function readPlaces(
  connection: LedgerConnection,
  indexes: readonly string[],
  from: string | undefined,
): Promise<Place[]> {
  const replies = await pipelined(connection, (pipeline) => {
    const start = from === undefined ? '+inf' : `(${from}`;
    for (const index of indexes) {
      pipeline.zrange(index, start, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, STEP, 'WITHSCORES');
    }
  });
  const places = (replies as string[][]).flatMap((reply) =>
    reply.flatMap((payoutId, at) => (at % 2 === 0 ? [{ payoutId, score: Number(reply[at + 1]) }] : [])),
  );
  return places.sort((one, other) => other.score - one.score).slice(0, STEP);
}

function isOlder(payouts: readonly Payout[], since: number): boolean {
  return payouts.every(({ updatedAt }) => Date.parse(updatedAt) < since - CLOCK_MARGIN_MS);
}

function matches(
  { state, batch, addressTo, reference, amount, updatedAt }: Payout,
  { since = -Infinity, until = Infinity, ...wanted }: PayoutFilter,
): boolean {
  const changedAt = Date.parse(updatedAt);
  return (
    (wanted.state === undefined || state === wanted.state) &&
    (wanted.batch === undefined || batch === wanted.batch) &&
    (wanted.address === undefined || addressTo === wanted.address || addressTo.startsWith(`${wanted.address}:`)) &&
    (wanted.reference === undefined || reference?.toLowerCase().includes(wanted.reference.toLowerCase()) === true) &&
    (wanted.amount === undefined || amount === wanted.amount) &&
    changedAt >= since &&
    changedAt < until
  );
}

/** Where to begin: what came into its state after `until` is passed over by halves, not one by one. */
async function findStart(
  connection: LedgerConnection,
  indexes: readonly string[],
  { batch, until }: PayoutFilter,
): Promise<string | undefined> {
  if (until === undefined || batch !== undefined) return undefined;
  const starts = await Promise.all(
    indexes.map(async (index) => findPlaceAt(connection, index, until + CLOCK_MARGIN_MS)),
  );
  return String(Math.max(...starts) + 1);
}

/** The place of the newest payout of an index that came into it before a time; the oldest, where none did. */
async function findPlaceAt(connection: LedgerConnection, index: string, time: number): Promise<number> {
  const { redis } = connection;
  let [low, high] = [0, (await ask(redis.zcard(index))) - 1];
  let place = 0;
  while (low <= high) {
    const rank = Math.floor((low + high) / 2);
    const [payoutId = '', score = '0'] = await ask(redis.zrange(index, String(rank), String(rank), 'WITHSCORES'));
    const [payout] = await readPayouts(connection, [payoutId]);
    if (payout === undefined || Date.parse(payout.updatedAt) < time) {
      place = Number(score);
      low = rank + 1;
    } else high = rank - 1;
  }
  return place;
}
