import { UnreadableRecordError } from '../base/errors.js';
import { walletAndTagKey, walletKey } from '../gateway/wallet.js';
import type { PayoutIndex } from './keys.js';
import { ask, type LedgerConnection, pipelined, pipelinedReadable } from './ledger-connection.js';
import { parseRecord, type PayoutRecord } from './payout-record.js';
import type { Payout } from './payout.js';
import { PAYOUT_STATES, type PayoutState } from './states.js';

/** Which payouts to list, and from where. */
export interface ListOptions {
  /** List by state, in the order in which the payouts entered it … */
  readonly state?: PayoutState;
  /** … or by batch, in the order of acceptance. One of the two. */
  readonly batch?: string;
  /** The most payouts of a page. @defaultValue 100 */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly cursor?: string;
  /** Begin at the other end. @defaultValue false */
  readonly newestFirst?: boolean;
}

/** One page of a list of payouts. */
export interface PayoutPage {
  readonly payouts: readonly Payout[];
  /** Payouts in the list whose record cannot be read. */
  readonly unreadable: readonly UnreadablePayout[];
  /** The `cursor` of the next page; undefined at the end. */
  readonly next: string | undefined;
}

/** A payout whose record someone has altered in Redis. */
export interface UnreadablePayout {
  readonly payoutId: string;
  /** Why it cannot be read. */
  readonly reason: string;
}

const DEFAULT_LIMIT = 100;

/** Lists payouts by page. Every index entry has its own number, so no payout is skipped or repeated while others move. */
export async function listPayouts(connection: LedgerConnection, options: ListOptions): Promise<PayoutPage> {
  const { payoutIds, next } = await listPayoutIds(connection, options);
  return { ...(await readEach(connection, payoutIds)), next };
}

/** Reads payouts in one round trip, in the order asked for; missing ones are left out. */
export async function readEach(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<Pick<PayoutPage, 'payouts' | 'unreadable'>> {
  const unreadable: UnreadablePayout[] = [];
  const payouts = await readReadable(connection, payoutIds, ({ message: reason }, payoutId) => {
    unreadable.push({ payoutId, reason });
  });
  return { payouts, unreadable };
}

/** As {@link listPayouts}, but the ids only. */
export async function listPayoutIds(
  connection: LedgerConnection,
  { state, batch, limit = DEFAULT_LIMIT, cursor, newestFirst = false }: ListOptions,
): Promise<{ payoutIds: string[]; next: string | undefined }> {
  const { keys } = connection;
  const index = batch === undefined ? keys.stateIndex(state ?? 'queued') : keys.batchIndex(batch);
  const entries = await readIndex(connection, index, { after: cursor, limit, newestFirst });
  return { payoutIds: entries.map(({ payoutId }) => payoutId), next: nextPlace(entries, limit) };
}

/** @throws UnreadableRecordError */
export async function readPayout(connection: LedgerConnection, payoutId: string): Promise<Payout | undefined> {
  const [payout] = await readReadable(connection, [payoutId], (error) => {
    throw error;
  });
  return payout;
}

/** As {@link readEach}, with the errors. */
export async function readReadable(
  connection: LedgerConnection,
  payoutIds: readonly string[],
  onUnreadable: (error: UnreadableRecordError, payoutId: string) => void,
): Promise<Payout[]> {
  const { replies } = await pipelinedReadable(connection, (pipeline) => {
    for (const payoutId of payoutIds) pipeline.hgetall(connection.keys.payout(payoutId));
  });
  return payoutIds.flatMap((payoutId, index) => {
    const record = replies[index] as PayoutRecord | undefined;
    try {
      if (record === undefined) throw new UnreadableRecordError(`The record of payout ${payoutId}`, NOT_A_HASH);
      return Object.keys(record).length === 0 ? [] : [parseRecord(payoutId, record)];
    } catch (error) {
      if (!(error instanceof UnreadableRecordError)) throw error;
      onUnreadable(error, payoutId);
      return [];
    }
  });
}

const NOT_A_HASH = new Error('it is not a hash');

interface IndexEntry {
  readonly payoutId: string;
  /** Orders the index; all indexes of an account share one counter. */
  readonly place: number;
  /** Its id in the index's stream; undefined if that is a sorted set. */
  readonly streamId: string | undefined;
}

interface IndexRange {
  /** Begin after this place, in the direction of reading; undefined: at the first one. */
  readonly after?: string | number | undefined;
  /** The last place to read. Only if the oldest come first. */
  readonly upTo?: string | undefined;
  readonly limit: number;
  /** @defaultValue false */
  readonly newestFirst?: boolean;
}

/** Takes one round trip. Entries are in the direction of reading. */
async function readIndexes(
  connection: LedgerConnection,
  indexes: readonly PayoutIndex[],
  { after, upTo, limit, newestFirst = false }: IndexRange,
): Promise<IndexEntry[][]> {
  const replies = await pipelined(connection, (pipeline) => {
    for (const { key, isStream } of indexes) {
      const [start, end] = [after === undefined ? undefined : `(${after}`, upTo];
      if (isStream && newestFirst) pipeline.xrevrange(key, toStreamId(start) ?? '+', '-', 'COUNT', limit);
      else if (isStream)
        pipeline.xrange(key, toStreamId(start, MAX_PART) ?? '-', toStreamId(end) ?? '+', 'COUNT', limit);
      else if (newestFirst)
        pipeline.zrange(key, start ?? '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES');
      else pipeline.zrange(key, start ?? '-inf', end ?? '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES');
    }
  });
  return indexes.map(({ isStream }, at) =>
    isStream ? parseStream(replies[at] as [string, string[]][]) : parseSortedSet(replies[at] as string[]),
  );
}

export async function readIndex(
  connection: LedgerConnection,
  index: PayoutIndex,
  range: IndexRange,
): Promise<IndexEntry[]> {
  const [entries = []] = await readIndexes(connection, [index], range);
  return entries;
}

/** The next reading's `after`; undefined at the end. */
export function nextPlace(entries: readonly IndexEntry[], limit: number): string | undefined {
  const last = entries.length < limit ? undefined : entries.at(-1);
  return last === undefined ? undefined : String(last.place);
}

/** An id's highest second part, after all of a place, even entries of others, so that each page leads on. */
const MAX_PART = '18446744073709551615';

function toStreamId(place: string | undefined, part = '0'): string | undefined {
  return place === undefined ? undefined : `${place}-${part}`;
}

function parseSortedSet(reply: readonly string[]): IndexEntry[] {
  return reply.flatMap((payoutId, at) =>
    at % 2 === 0 ? [{ payoutId, place: Number(reply[at + 1]), streamId: undefined }] : [],
  );
}

function parseStream(reply: readonly (readonly [string, readonly string[]])[]): IndexEntry[] {
  return reply.map(([id, [, payoutId = '']]) => ({ payoutId, place: Number.parseInt(id, 10), streamId: id }));
}

/** A payout must match all given fields. */
export interface PayoutFilter {
  /** The beginning of its payoutId; case does not matter. Records of others are not read. */
  readonly idPrefix?: string | undefined;
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

interface FoundPayouts extends Pick<PayoutPage, 'payouts' | 'unreadable'> {
  /** The next page begins after it; undefined at the end. */
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
  limit: number,
  after?: string,
): Promise<FoundPayouts> {
  const { keys } = connection;
  const { batch, state, since } = filter;
  let indexes =
    batch === undefined
      ? (state === undefined ? PAYOUT_STATES : [state]).map((name) => keys.stateIndex(name))
      : [keys.batchIndex(batch)];
  let from = after ?? (await findStart(connection, indexes, filter));
  const payouts: Payout[] = [];
  const unreadable: UnreadablePayout[] = [];
  let searched = 0;
  while (searched < SEARCHED_PER_PAGE) {
    const entries = await readEntries(connection, indexes, from);
    const wanted = entries.filter(({ payoutId }) => hasPrefix(payoutId, filter.idPrefix));
    const read = await readEach(connection, idsOf(wanted));
    const found = new Map(read.payouts.map((payout) => [payout.payoutId, payout]));
    const broken = new Map(read.unreadable.map((each) => [each.payoutId, each]));
    for (const { payoutId, place } of entries) {
      searched += 1;
      from = String(place);
      const payout = found.get(payoutId);
      const lost = broken.get(payoutId);
      // Nobody knows whether it matches.
      if (lost !== undefined) unreadable.push(lost);
      else if (payout !== undefined && matches(payout, filter)) payouts.push(payout);
      if (payouts.length + unreadable.length === limit) return { payouts, unreadable, next: from, searched };
    }
    if (entries.length < STEP) return { payouts, unreadable, next: undefined, searched };
    if (batch === undefined && since !== undefined && found.size > 0 && isOlder([...found.values()], since)) {
      // A payout that was put back unsent has its old place in the queue, and a new time.
      indexes = indexes.filter(({ key }) => key === keys.state('queued'));
      if (indexes.length === 0) return { payouts, unreadable, next: undefined, searched };
    }
  }
  return { payouts, unreadable, next: from, searched };
}

function hasPrefix(payoutId: string, prefix = ''): boolean {
  return payoutId.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase();
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
    const { payouts } = await readEach(connection, entry === undefined ? [] : [entry.payoutId]);
    const [payout] = payouts;
    // Up to here all entered before the time.
    if (payout === undefined || Date.parse(payout.updatedAt) < time) low = Math.ceil((low + high) / 2);
    else high = (entry?.place ?? 0) - 1;
  }
  return low;
}

const READ_BESIDE = 9;

/**
 * Counts the payouts that have been `in_progress` for longer than `stuckAfterMs`. The index is in order of entry, so a
 * binary search suffices: 20 reads for a million payouts.
 */
export async function countStuck(connection: LedgerConnection, stuckAfterMs: number): Promise<number> {
  const { redis, keys, clock } = connection;
  const index = keys.state('in_progress');
  const before = clock.wallNow() - stuckAfterMs;
  let stuck = 0;
  let young = await ask(redis.zcard(index));
  while (stuck < young) {
    const middle = Math.floor((stuck + young) / 2);
    const payoutIds = await ask(redis.zrange(index, String(middle), String(middle + READ_BESIDE)));
    // Another that entered next to it says the same of one that cannot be read.
    const [payout] = (await readEach(connection, payoutIds)).payouts;
    // A payout that has left the state meanwhile was changed just now.
    const isStuck = payout?.state === 'in_progress' && Date.parse(payout.updatedAt) < before;
    if (isStuck) stuck = middle + 1;
    else young = middle;
  }
  return stuck;
}
