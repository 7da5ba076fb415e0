import { ask, askReadable, type LedgerConnection, pipelinedReadable } from '../ledger-connection.js';
import { toIsoTime } from '../../base/format.js';
import { parseHistoryEntry } from '../payout-record.js';
import { parseHeldField } from '../payout.js';
import { type PayoutState, URGENT_STATES } from '../states.js';
import {
  CurrencyTallies,
  listStates,
  parseStates,
  type StateSums,
  type StateTallies,
  tallyStates,
} from './currency-tallies.js';
import { readIndexPage, readPaymentFacts } from '../payment-facts.js';
import { readIndex } from '../payout-queries.js';
import { readEventsAfter, timeOfEvent } from './state-events.js';
import type { CurrencySum } from './statistics.js';

/** Who enqueued a batch, when, and what became of it. */
export interface Batch {
  readonly name: string;
  readonly total: number;
  /** When its first payout was accepted: ISO 8601, UTC. */
  readonly enqueuedAt: string;
  /** Who asked for its first payout, or the key that signed it; undefined if it names neither. */
  readonly enqueuedBy: string | undefined;
  readonly sums: StateSums;
  /** The account's queued payouts before the batch's first one, priorities left aside; undefined if none waits. */
  readonly ahead: number | undefined;
}

export interface BatchSummary extends Batch {
  /** Messages of payouts that need an operator or failed, of the newest of each state; the most frequent first. */
  readonly messages: readonly BatchMessage[];
  /** The newest of these payouts, {@link URGENT_LISTED} of each state at most. */
  readonly urgent: readonly string[];
}

export interface BatchMessage {
  readonly state: PayoutState;
  readonly message: string;
  readonly count: number;
}

/** The parts of a batch that a person asks for. What is paid is neither on its way nor in doubt. */
const PROGRESS = {
  paid: ['completed'],
  failed: ['failed', 'rejected'],
  cancelled: ['cancelled'],
  writtenOff: ['written_off'],
  left: ['queued', 'held', 'sending', 'in_progress', 'unknown'],
} as const satisfies Readonly<Record<string, readonly PayoutState[]>>;

type BatchProgress = Readonly<
  Record<keyof typeof PROGRESS, { readonly count: number; readonly sums: readonly CurrencySum[] }>
>;

/** Each payout is in one part, so the counts add up to the batch. */
export function progressOf({ sums }: Pick<Batch, 'sums'>): BatchProgress {
  const parts = Object.entries(PROGRESS).map(([part, states]) => {
    const tallies = new CurrencyTallies(states.flatMap((state) => sums[state]));
    return [part, { count: tallies.count, sums: tallies.list() }];
  });
  return Object.fromEntries(parts) as BatchProgress;
}

/** The field of the kept sums that names their last event: no batch has this name. */
export const POSITION = '';

/**
 * Reads the newest batches, newest first, as the sender counted them a few seconds ago.
 * @returns `asOf`: that time, by Redis's clock, ms; undefined if no sender has counted yet
 */
export async function readBatches(
  connection: LedgerConnection,
  limit: number,
): Promise<{ readonly batches: readonly Batch[]; readonly asOf: number | undefined }> {
  const { [POSITION]: position, ...kept } = await askReadable(connection.redis.hgetall(connection.keys.batches), {});
  const heads = await readHeads(connection, Object.keys(kept));
  const newest = heads.sort((one, other) => other.enqueuedAt.localeCompare(one.enqueuedAt)).slice(0, limit);
  const batches = newest.map(async (head) =>
    withPlace(connection, { ...head, sums: listStates(parseStates(kept[head.name]) ?? tallyStates()) }),
  );
  const last = parsePosition(position);
  return { batches: await Promise.all(batches), asOf: last === undefined ? undefined : timeOfEvent(last) };
}

/** A batch that is still being counted. */
export type UncountedBatch = Head & { readonly sums: undefined };

/**
 * Exact, also beside payouts that change.
 * @param count - of a batch that the sender does not keep; undefined if the caller does not wait for it
 * @returns undefined for an empty batch
 */
export async function readBatchSummary(connection: LedgerConnection, name: string): Promise<BatchSummary | undefined>;
export async function readBatchSummary(
  connection: LedgerConnection,
  name: string,
  count: (head: Head) => Promise<StateSums | undefined>,
): Promise<BatchSummary | UncountedBatch | undefined>;
export async function readBatchSummary(
  connection: LedgerConnection,
  name: string,
  count = async (head: Head): Promise<StateSums | undefined> => countBatch(connection, head.name),
): Promise<BatchSummary | UncountedBatch | undefined> {
  const [[head], kept] = await Promise.all([readHeads(connection, [name]), followKept(connection, name)]);
  if (head === undefined) return undefined;
  const sums = kept === undefined ? await count(head) : listStates(kept);
  if (sums === undefined) return { ...head, sums };
  const [batch, urgent] = await Promise.all([
    withPlace(connection, { ...head, sums }),
    readUrgent(connection, { name, sums }),
  ]);
  return { ...batch, ...urgent };
}

/** What the sender counted, and the events since; otherwise each payout is read, some 1 s for 100,000. */
export async function readBatchSums(connection: LedgerConnection, name: string): Promise<StateSums> {
  const kept = await followKept(connection, name);
  return kept === undefined ? countBatch(connection, name) : listStates(kept);
}

/** The events of some minutes. */
const MOST_FOLLOWED = 1_000;

/** @returns undefined if nothing was kept, or it does not lead to the batch's number of payouts */
async function followKept(connection: LedgerConnection, name: string): Promise<StateTallies | undefined> {
  const { redis, keys } = connection;
  const [position, kept] = await askReadable(redis.hmget(keys.batches, POSITION, name), []);
  const [after, tallies] = [parsePosition(position), parseStates(kept)];
  if (after === undefined || tallies === undefined) return undefined;
  const events = await readEventsAfter(connection, after, MOST_FOLLOWED);
  if (events === undefined || events.length === MOST_FOLLOWED) return undefined;
  const changes = events.flatMap(({ change }) => change ?? []);
  const payoutIds = changes.map(({ payoutId }) => payoutId);
  const [facts, total] = await Promise.all([
    readPaymentFacts(connection, payoutIds),
    ask(redis.zcard(keys.batch(name))),
  ]);
  for (const [index, { from, to }] of changes.entries()) {
    const known = facts[index];
    if (known?.batch !== name) continue;
    if (from !== undefined) tallies[from].add(known, -1);
    tallies[to].add(known, 1);
  }
  const counts = Object.values(tallies).map(({ count }) => count);
  return counts.every((count) => count >= 0) && counts.reduce((sum, count) => sum + count) === total
    ? tallies
    : undefined;
}

/** The id of the last event that was counted. Any other text, which someone may have stored, counts as nothing. */
export function parsePosition(text: string | null | undefined): string | undefined {
  return /^"(\d+-\d+)"$/.exec(text ?? '')?.[1];
}

/** Small, since others read over the same connection meanwhile. */
const PAGE = 250;

/** Reads each payout. */
export async function countBatch(connection: LedgerConnection, name: string): Promise<StateSums> {
  const tallies = tallyStates();
  let after: string | undefined = '';
  while (after !== undefined) {
    const page = await readIndexPage(connection, connection.keys.batchIndex(name), { after, limit: PAGE });
    for (const { state, facts } of page.payouts) if (state !== undefined) tallies[state].add(facts, 1);
    after = page.next;
  }
  return listStates(tallies);
}

type Head = Pick<Batch, 'name' | 'total' | 'enqueuedAt' | 'enqueuedBy'>;

/** Leaves out empty batches. */
async function readHeads(connection: LedgerConnection, names: readonly string[]): Promise<Head[]> {
  const { keys } = connection;
  const { replies: found } = await pipelinedReadable(connection, (pipeline) => {
    for (const name of names) pipeline.zrange(keys.batch(name), '0', '0').zcard(keys.batch(name));
  });
  const heads = names.flatMap((name, index) => {
    const [[payoutId] = [], total] = found.slice(2 * index, 2 * index + 2) as [string[]?, number?];
    return payoutId === undefined || total === undefined ? [] : [{ name, total, payoutId }];
  });
  const { replies: records } = await pipelinedReadable(connection, (pipeline) => {
    for (const { payoutId } of heads) pipeline.hmget(keys.payout(payoutId), 'h0', 'requestedBy', 'key');
  });
  return heads.map(({ name, total }, index) => {
    const [first, requestedBy, key] = (records[index] ?? []) as (string | null)[];
    const { at } = parseHistoryEntry(first ?? '');
    return { name, total, enqueuedAt: toIsoTime(at), enqueuedBy: requestedBy ?? key ?? undefined };
  });
}

async function withPlace(connection: LedgerConnection, batch: Omit<Batch, 'ahead'>): Promise<Batch> {
  return { ...batch, ahead: batch.sums.queued.length === 0 ? undefined : await findPlace(connection, batch) };
}

const PROBES = 16;

/**
 * A batch is sent in its order, but for payouts that were queued again, so a search finds the first. Each step takes two
 * round trips, hence several probes at once.
 */
async function findPlace(connection: LedgerConnection, { name, total }: Head): Promise<number | undefined> {
  const { keys } = connection;
  let place: number | undefined;
  for (let [low, high] = [0, total]; low < high;) {
    const step = Math.ceil((high - low) / PROBES);
    const probes = Array.from({ length: Math.ceil((high - low) / step) }, (_, index) => low + index * step);
    const { replies: found } = await pipelinedReadable(connection, (pipeline) => {
      for (const probe of probes) pipeline.zrange(keys.batch(name), String(probe), String(probe));
    });
    const { replies: ranks } = await pipelinedReadable(connection, (pipeline) => {
      for (const [payoutId = ''] of found as string[][]) pipeline.zrank(keys.state('queued'), payoutId);
    });
    const first = ranks.findIndex((rank) => typeof rank === 'number');
    const before = first === -1 ? probes.length - 1 : first - 1;
    place = (ranks[first] as number | undefined) ?? place;
    high = probes[first] ?? high;
    low = before === -1 ? high : (probes[before] ?? high) + 1;
  }
  return place;
}

const URGENT_READ = 1_000;
const URGENT_LISTED = 5;
const LISTED_MESSAGES = 20;

async function readUrgent(
  connection: LedgerConnection,
  { name, sums }: Pick<Batch, 'name' | 'sums'>,
): Promise<Pick<BatchSummary, 'messages' | 'urgent'>> {
  const { keys } = connection;
  const counts = new Map<string, BatchMessage>();
  const urgent: string[] = [];
  for (const state of URGENT_STATES.filter((each) => sums[each].length > 0)) {
    const newest = await readIndex(connection, keys.stateIndex(state), { limit: URGENT_READ, newestFirst: true });
    const { replies } = await pipelinedReadable(connection, (pipeline) => {
      for (const { payoutId } of newest) pipeline.hmget(keys.payout(payoutId), 'batch', 'message', 'held');
    });
    const rows = replies.map((row) => (row ?? []) as (string | null)[]);
    const own = rows.flatMap(([batch, message, held], index) => (batch === name ? [{ message, held, index }] : []));
    urgent.push(...own.slice(0, URGENT_LISTED).map(({ index }) => newest[index]?.payoutId ?? ''));
    for (const { message: said, held } of own) {
      const message = state === 'held' && held != null ? parseHeldField(held).message : said;
      if (message == null) continue;
      const key = `${state}\t${message}`;
      counts.set(key, { state, message, count: (counts.get(key)?.count ?? 0) + 1 });
    }
  }
  const messages = [...counts.values()].sort((one, other) => other.count - one.count).slice(0, LISTED_MESSAGES);
  return { messages, urgent };
}
