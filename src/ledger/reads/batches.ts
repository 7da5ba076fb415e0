import { fromUnits, toUnits } from '../../base/decimal.js';
import { ask, type LedgerConnection, pipelined } from '../ledger-connection.js';
import { listPayoutIds } from './payout-queries.js';
import { parseHeldField } from '../payout.js';
import { compareEventIds, readEventsAfter, type StateEvent } from './state-events.js';
import { isPayoutState, PAYOUT_STATES, type PayoutState, URGENT_STATES } from '../states.js';
import type { CurrencySum } from './statistics.js';

interface BatchCounts {
  readonly total: number;
  readonly counts: StateCounts;
}

interface CountsAt {
  readonly position: string;
  readonly counts: StateCounts;
}

/** A part of the batch, up to a place, counted right after an event. */
interface CountedPart {
  readonly upTo: number;
  readonly eventId: string;
}

/** A smaller batch is counted in some ms. */
const KEPT_FROM = 5_000;
/** In seconds. Once a day everything is counted again, in case the events were incomplete. */
const KEPT_FOR = 24 * 60 * 60;
const EVENTS_PER_READ = 500;
/** To follow an event costs as much as to count some payouts, so a batch that is further behind is counted again. */
const PAYOUTS_PER_EVENT = 8;

/**
 * Keeps the counts of a large batch with their event; the next call follows the events since. If these are incomplete
 * (trimmed, or payouts were removed), it counts again.
 */
export async function readBatchCounts(connection: LedgerConnection, batch: string): Promise<BatchCounts> {
  const kept = await loadCounts(connection, batch);
  const followed = kept && (await followTo(connection, batch, kept, []));
  if (followed !== undefined) {
    if (followed.position !== kept?.position) await keepCounts(connection, batch, followed);
    return { total: sumCounts(followed.counts), counts: followed.counts };
  }
  return countAll(connection, batch);
}

/** Payouts move meanwhile; the events show what changed in a part since. */
async function countAll(connection: LedgerConnection, batch: string): Promise<BatchCounts> {
  const parts: CountedPart[] = [];
  const counts: StateCounts = new Map();
  let page = await readPlaces(connection, batch);
  for (;;) {
    const { payoutIds, upTo } = page;
    const isLast = payoutIds.length < PAYOUTS_PER_COUNT;
    // In parallel: an unawaited rejection would end the process.
    const [part, next] = await Promise.all([
      countStates(connection, batch, payoutIds),
      isLast ? undefined : readPlaces(connection, batch, upTo),
    ]);
    for (const [state, count] of part.counts) addCount(counts, state, count);
    parts.push({ upTo: Number(upTo), eventId: part.eventId });
    if (next !== undefined) {
      page = next;
      continue;
    }
    const { total } = part;
    const start = { position: parts[0]?.eventId ?? part.eventId, counts: new Map(counts) };
    const followed = total < KEPT_FROM ? undefined : await followTo(connection, batch, start, parts);
    if (followed === undefined) return { total, counts };
    await keepCounts(connection, batch, followed, true);
    return { total: sumCounts(followed.counts), counts: followed.counts };
  }
}

/** @param after - `upTo` of the page before */
async function readPlaces(
  { redis, keys }: LedgerConnection,
  batch: string,
  after = '-inf',
): Promise<{ readonly payoutIds: readonly string[]; readonly upTo: string }> {
  const start = after === '-inf' ? after : `(${after}`;
  const found = await ask(
    redis.zrange(keys.batch(batch), start, '+inf', 'BYSCORE', 'LIMIT', 0, PAYOUTS_PER_COUNT, 'WITHSCORES'),
  );
  return { payoutIds: found.filter((_, position) => position % 2 === 0), upTo: found.at(-1) ?? after };
}

/**
 * @param parts - what was counted later than `from`, in the order of the batch
 * @returns undefined if the events do not lead to the batch's number of payouts, or are too many
 */
async function followTo(
  connection: LedgerConnection,
  batch: string,
  { position, counts }: CountsAt,
  parts: readonly CountedPart[],
): Promise<CountsAt | undefined> {
  const { eventId: end, total } = await countStates(connection, batch, []);
  let last = position;
  for (let followed = 0; last !== end;) {
    const events = await readEventsAfter(connection, last, EVENTS_PER_READ);
    if (events === undefined || events.length === 0 || followed > total / PAYOUTS_PER_EVENT) return undefined;
    const endsAt = events.findIndex(({ eventId }) => eventId === end);
    const page = endsAt === -1 ? events : events.slice(0, endsAt + 1);
    await followPage(connection, batch, { counts, parts, events: page });
    followed += page.length;
    last = page.at(-1)?.eventId ?? last;
  }
  const isWhole = sumCounts(counts) === total && [...counts.values()].every((count) => count >= 0);
  return isWhole ? { position: end, counts } : undefined;
}

async function followPage(
  connection: LedgerConnection,
  batch: string,
  { counts, parts, events }: { counts: StateCounts; parts: readonly CountedPart[]; events: readonly StateEvent[] },
): Promise<void> {
  const changes = events.flatMap(({ eventId, change }) => (change === undefined ? [] : [{ eventId, ...change }]));
  const places = await pipelined(connection, (pipeline) => {
    for (const { payoutId } of changes) pipeline.zscore(connection.keys.batch(batch), payoutId);
  });
  for (const [index, { eventId, from, to }] of changes.entries()) {
    const place = places[index];
    if (place === null) continue;
    const part = parts.find(({ upTo }) => Number(place) <= upTo);
    if (part !== undefined && compareEventIds(eventId, part.eventId) <= 0) continue;
    if (from !== undefined) addCount(counts, from, -1);
    addCount(counts, to, 1);
  }
}

async function loadCounts({ redis, keys }: LedgerConnection, batch: string): Promise<CountsAt | undefined> {
  const kept = parseKept(await ask(redis.get(keys.batchCounts(batch))));
  if (kept === null || typeof kept !== 'object' || !('position' in kept && 'counts' in kept)) return undefined;
  const { position, counts } = kept;
  if (typeof position !== 'string') return undefined;
  const pairs = Object.entries(counts as Record<string, unknown>);
  return {
    position,
    counts: new Map(pairs.flatMap(([state, count]) => (isPayoutState(state) ? [[state, Number(count)] as const] : []))),
  };
}

/** Someone may have stored text that is not JSON: it counts as nothing. */
function parseKept(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}

/** Only a cache for the next call, so a read-only user does without. Expired counts do not come back. */
async function keepCounts(
  { redis, keys }: LedgerConnection,
  batch: string,
  { position, counts }: CountsAt,
  isNew = false,
): Promise<void> {
  const text = JSON.stringify({ position, counts: Object.fromEntries(counts) });
  const key = keys.batchCounts(batch);
  await (isNew ? redis.set(key, text, 'EX', KEPT_FOR) : redis.set(key, text, 'KEEPTTL', 'XX')).catch(() => undefined);
}

type StateCounts = Map<PayoutState, number>;

interface CountedStates {
  /** The counts are those right after this event. */
  readonly eventId: string;
  /** The number of payouts in the whole batch. */
  readonly total: number;
  readonly counts: StateCounts;
}

/** 500 keep Redis busy for some 1 ms. */
export const PAYOUTS_PER_COUNT = 500;

/** @param payoutIds - {@link PAYOUTS_PER_COUNT} at most */
export async function countStates(
  { run, keys }: LedgerConnection,
  batch: string,
  payoutIds: readonly string[],
): Promise<CountedStates> {
  const records = payoutIds.map((payoutId) => keys.payout(payoutId));
  const reply = (await run('count-states', [], [keys.batch(batch), ...records])) as [string, number, ...unknown[]];
  const [eventId, total, ...pairs] = reply;
  const counts: StateCounts = new Map();
  for (let index = 0; index < pairs.length; index += 2) {
    const state = String(pairs[index]);
    if (isPayoutState(state)) counts.set(state, Number(pairs[index + 1]));
  }
  return { eventId, total, counts };
}

/** @param times - -1 subtracts one */
function addCount(counts: StateCounts, state: PayoutState, times: number): void {
  counts.set(state, (counts.get(state) ?? 0) + times);
}

function sumCounts(counts: StateCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** A batch's progress, in payouts and money, and its problems. */
export interface BatchSummary {
  readonly total: number;
  /** False if the batch is larger than the count's limit. */
  readonly isWhole: boolean;
  readonly sums: Readonly<Record<PayoutState, readonly CurrencySum[]>>;
  /** Messages of payouts that need an operator or failed; the most frequent first. */
  readonly messages: readonly BatchMessage[];
}

export interface BatchMessage {
  readonly state: PayoutState;
  readonly message: string;
  readonly count: number;
}

/** A batch has no counters of its own: each payout is read, which takes too long for more. */
const MOST_COUNTED = 100_000;
const PAGE_SIZE = 1_000;
const LISTED_MESSAGES = 20;

/** The sums are exact. @returns a total of 0 for an empty batch */
export async function readBatchSummary(connection: LedgerConnection, batch: string): Promise<BatchSummary> {
  const sums = new Map<string, { count: number; units: bigint }>();
  const messages = new Map<string, number>();
  let total = 0;
  let cursor: string | undefined;
  do {
    const page = await listPayoutIds(connection, {
      batch,
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const [state = null, paymentId, symbol, amount, said = null, held = null] of await readFields(
      connection,
      page.payoutIds,
    )) {
      if (state === null || !isPayoutState(state)) continue;
      const key = [state, paymentId, symbol ?? ''].join('\t');
      const sum = sums.get(key) ?? { count: 0, units: 0n };
      sums.set(key, { count: sum.count + 1, units: sum.units + toUnits(amount ?? '0') });
      total += 1;
      const message = state === 'held' && held !== null ? parseHeldField(held).message : said;
      if (message === null || !URGENT_STATES.includes(state)) continue;
      const entry = `${state}\t${message}`;
      messages.set(entry, (messages.get(entry) ?? 0) + 1);
    }
    cursor = page.next;
  } while (cursor !== undefined && total < MOST_COUNTED);
  return { total, isWhole: cursor === undefined, sums: toSums(sums), messages: toMessages(messages) };
}

type Fields = readonly (string | null)[];

async function readFields(connection: LedgerConnection, payoutIds: readonly string[]): Promise<Fields[]> {
  const replies = await pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds) {
      pipeline.hmget(connection.keys.payout(payoutId), 'state', 'paymentId', 'symbol', 'amount', 'message', 'held');
    }
  });
  return replies as Fields[];
}

function toSums(sums: ReadonlyMap<string, { count: number; units: bigint }>): BatchSummary['sums'] {
  const all = [...sums].map(([key, { count, units }]) => {
    const [state = '', paymentId, symbol = ''] = key.split('\t');
    return {
      state,
      paymentId: Number(paymentId),
      symbol: symbol === '' ? undefined : symbol,
      count,
      amount: fromUnits(units),
    };
  });
  const ofState = (wanted: PayoutState): CurrencySum[] =>
    all.flatMap(({ state, ...sum }) => (state === wanted ? [sum] : [])).sort((one, other) => other.count - one.count);
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, ofState(state)])) as unknown as BatchSummary['sums'];
}

function toMessages(messages: ReadonlyMap<string, number>): BatchMessage[] {
  return [...messages]
    .sort(([, one], [, other]) => other - one)
    .slice(0, LISTED_MESSAGES)
    .map(([key, count]) => {
      const [state = '', message = ''] = key.split('\t');
      return { state: state as PayoutState, message, count };
    });
}
