import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { DAY_MS } from '../../base/clock.js';
import type { AccountStats } from './account-stats.js';
import { askReadable, type LedgerConnection, pipelined } from '../ledger-connection.js';
import { parseStored, storedAmount, storedTime } from '../parse-stored.js';
import { STREAM_BEGINNING, timeOfEvent } from './state-events.js';
import { PAYOUT_STATES, type PayoutState } from '../states.js';

/** Minutes in Redis: each field `hour:<number>` holds an hour of them as rows without names. */

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

const PREFIX = 'hour:';

/** One minute by Redis's clock. */
export interface MinuteStatistics {
  /** In ms. */
  readonly at: number;
  /** Payouts sent, or possibly sent, but not those put back unsent. */
  readonly sent: number;
  /** Between the writes of two sends, measured by their process. Includes idle time. */
  readonly smallestGapMs: number | undefined;
  readonly largestGapMs: number | undefined;
  readonly completed: number;
  readonly rejected: number;
  readonly unknown: number;
  /** Payouts queued at the end of the minute, or after its last event so far. */
  readonly backlog: number;
}

const [count, gap] = [z.number(), z.number().nullable()];
/** minute, sent, smallestGapMs, largestGapMs, completed, rejected, unknown, backlog */
const rowSchema = z.tuple([count, count, gap, gap, count, count, count, count]);
type Row = z.output<typeof rowSchema>;

export function toHourFields(minutes: Iterable<MinuteStatistics>): Record<string, string> {
  const hours: Record<string, Row[]> = {};
  for (const minute of minutes) (hours[`${PREFIX}${Math.floor(minute.at / HOUR_MS)}`] ??= []).push(toRow(minute));
  return Object.fromEntries(Object.entries(hours).map(([field, rows]) => [field, JSON.stringify(rows)]));
}

/** Oldest first. */
export function parseHourFields(fields: Readonly<Record<string, string>>): MinuteStatistics[] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(PREFIX))
    .flatMap(([, text]) => (parseStored(z.array(rowSchema), text) ?? []).map(parseRow))
    .sort((one, other) => one.at - other.at);
}

function toRow({
  at,
  sent,
  smallestGapMs,
  largestGapMs,
  completed,
  rejected,
  unknown,
  backlog,
}: MinuteStatistics): Row {
  return [at / MINUTE_MS, sent, smallestGapMs ?? null, largestGapMs ?? null, completed, rejected, unknown, backlog];
}

function parseRow([minute, sent, smallest, largest, completed, rejected, unknown, backlog]: Row): MinuteStatistics {
  const gaps = { smallestGapMs: smallest ?? undefined, largestGapMs: largest ?? undefined };
  return { at: minute * MINUTE_MS, sent, ...gaps, completed, rejected, unknown, backlog };
}

/** An account's statistics, derived from its events by the sender, a few seconds behind the ledger. */
export interface AccountStatistics {
  /** The newest counted event, by Redis's clock, ms; undefined before the first. */
  readonly asOf: number | undefined;
  /** The last 24 hours, oldest first, without empty minutes. */
  readonly minutes: readonly MinuteStatistics[];
  readonly sums: Readonly<Record<PayoutState, readonly CurrencySum[]>>;
  /** Today's (UTC) payouts, by currency. */
  readonly today: Readonly<Record<CountedToday, readonly CurrencySum[]>>;
  /** The last begin of a send, by Redis's clock, ms. */
  readonly lastSendAt: number | undefined;
  /** The last gaps between two writes in which nothing was idle: 20 at most, in ms. */
  readonly pace: readonly number[];
}

export interface CurrencySum {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  readonly count: number;
  /** A decimal string. */
  readonly amount: string;
}

export const COUNTED_TODAY = ['sent', 'completed', 'rejected', 'failed'] as const;
export type CountedToday = (typeof COUNTED_TODAY)[number];

const RATE_MINUTES = 10;

/** Everything is 0 before the first sender. */
export async function readStatistics({ redis, keys, clock }: LedgerConnection): Promise<AccountStatistics> {
  return parseStatistics(await askReadable(redis.hgetall(keys.statistics), {}), clock.wallNow());
}

/** The part of the statistics that every scrape reads. */
export async function readQueuedSums({ redis, keys }: LedgerConnection): Promise<readonly CurrencySum[]> {
  return parseStored(STORED.sums, await askReadable(redis.hget(keys.statistics, 'sums'), null))?.queued ?? [];
}

export function parseStatistics(stored: Readonly<Record<string, string>>, wallNow: number): AccountStatistics {
  const { position = STREAM_BEGINNING, sums = {}, today, lastSendAt, pace = [] } = readFields(stored);
  const isToday = today?.day === Math.floor(wallNow / DAY_MS);
  return {
    asOf: position === STREAM_BEGINNING ? undefined : timeOfEvent(position),
    minutes: parseHourFields(stored).filter(({ at }) => at > wallNow - DAY_MS),
    sums: withEach(PAYOUT_STATES, sums),
    today: withEach(COUNTED_TODAY, isToday ? today : {}),
    lastSendAt,
    pace,
  };
}

function withEach<Name extends string>(names: readonly Name[], sums: Partial<Record<Name, CurrencySum[]>>) {
  return Object.fromEntries(names.map((name) => [name, sums[name] ?? []] as const)) as Record<Name, CurrencySum[]>;
}

const sumsField: z.ZodType<CurrencySum[]> = z.array(
  z
    .object({
      paymentId: z.int(),
      symbol: z.string().optional(),
      count: z.int(),
      amount: storedAmount,
    })
    .transform((sum): CurrencySum => ({ symbol: undefined, ...sum })),
);

const STORED = {
  version: z.unknown(),
  position: z.string().regex(/^\d{1,15}-\d+$/),
  sums: z.partialRecord(z.enum(PAYOUT_STATES), sumsField),
  today: z.object({ day: z.int() }).and(z.partialRecord(z.enum(COUNTED_TODAY), sumsField)),
  lastSendAt: storedTime,
  pace: z.array(z.number()),
  begun: z.object({ payoutId: z.string(), at: z.number() }),
};

type StoredFields = { readonly [Name in keyof typeof STORED]: z.output<(typeof STORED)[Name]> | undefined };

/** Each field that is what the sender writes; of others nothing is known, because anyone may have stored them. */
export function readFields(stored: Readonly<Record<string, string>>): StoredFields {
  const entries = Object.entries(STORED).map(([name, schema]) => [name, parseStored(schema, stored[name])]);
  return Object.fromEntries(entries) as StoredFields;
}

interface BacklogEstimate {
  /** Sends a minute over the last 10 minutes, or since the first send among them. */
  readonly ratePerMinute: number;
  /** Wall clock, ms; undefined if nothing can be said. Payouts with a later `notBefore` come on top. */
  readonly endsAt: number | undefined;
  /** Why there is no end, as a clause. */
  readonly why: string | undefined;
}

/**
 * Estimates the end of a backlog: what waits, at the pace of the last sends. There is none while nothing is sent.
 * @param queued - the payouts that wait, in the order of sending up to the last wanted one
 * @param stoppedBy - what else stops the account, such as its headline; undefined if nothing
 */
export function estimateEnd(
  { minutes, pace, lastSendAt = -Infinity }: Pick<AccountStatistics, 'minutes' | 'pace' | 'lastSendAt'>,
  { queued, paused, objections, sender }: Pick<AccountStats, 'queued' | 'paused' | 'objections' | 'sender'>,
  wallNow: number,
  stoppedBy?: string,
): BacklogEstimate {
  const recent = minutes.filter(({ at, sent }) => sent > 0 && at > wallNow - RATE_MINUTES * MINUTE_MS);
  const sent = recent.reduce((sum, minute) => sum + minute.sent, 0);
  const ratePerMinute = sent === 0 ? 0 : (sent * MINUTE_MS) / Math.max(MINUTE_MS, wallNow - (recent[0]?.at ?? 0));
  const paceMs = paceOf(pace.slice(-LAST_GAPS));
  const why =
    objections.length > 0
      ? 'a send journal contradicts the ledger'
      : paused
        ? 'the account is paused'
        : sender === null
          ? 'no worker sends'
          : (stoppedBy ??
            (wallNow - lastSendAt > LATELY_MS
              ? `nothing was sent in the last ${LATELY_MS / MINUTE_MS} minutes`
              : paceMs === undefined
                ? 'no two payouts were sent one right after the other yet'
                : undefined));
  const endsAt = why === undefined && paceMs !== undefined ? wallNow + queued * paceMs : undefined;
  return { ratePerMinute, endsAt: queued === 0 ? wallNow : endsAt, why: queued === 0 ? undefined : why };
}

/** Longer than a response of the gateway, and than two clocks differ without an alert. */
const LATELY_MS = 2 * MINUTE_MS;

/** As many of the last sends say how long the others take: older ones tell of a gateway that may have become slow. */
const LAST_GAPS = 12;

/** The mean of the middle half: a standstill among the gaps does not count, slow responses do. */
function paceOf(gaps: readonly number[]): number | undefined {
  const quarter = Math.floor(gaps.length / 4);
  const middle = gaps.toSorted((one, other) => one - other).slice(quarter, gaps.length - quarter);
  return middle.length === 0 ? undefined : middle.reduce((sum, gapMs) => sum + gapMs, 0) / middle.length;
}

/** The two hashes that the sender writes together. The sums of the batches are up to the same event. */
export interface StatisticsFields {
  readonly statistics: Readonly<Record<string, string>>;
  readonly batches: Readonly<Record<string, string>>;
}

/** The revision shows whether another process wrote since. */
export interface StoredStatistics extends StatisticsFields {
  /** '' if there are none. */
  readonly revision: string;
}

export async function loadStatistics(connection: LedgerConnection): Promise<StoredStatistics> {
  const { keys } = connection;
  // In this order: batches that are newer than the revision are never written upon.
  const replies = await pipelined(connection, (pipeline) => pipeline.hgetall(keys.statistics).hgetall(keys.batches));
  const [{ revision = '', ...statistics } = {}, batches = {}] = replies as Record<string, string>[];
  return { revision, statistics, batches };
}

/**
 * Writes all changes or none.
 * @returns what is stored now; undefined if another process wrote since, or the statistics are gone: load them again
 * @throws RedisUnavailableError if it may or may not have happened: load them again
 */
export async function saveStatistics(
  { run, keys }: LedgerConnection,
  { revision, ...stored }: StoredStatistics,
  next: StatisticsFields,
): Promise<StoredStatistics | undefined> {
  const nextRevision = randomUUID();
  const args = [
    ...listChanges(stored.statistics, { ...next.statistics, revision: nextRevision }),
    ...listChanges(stored.batches, next.batches),
  ];
  const reply = await run('write-statistics', { revision }, [keys.statistics, keys.batches], args);
  return reply === 1 ? { revision: nextRevision, ...next } : undefined;
}

type Fields = Readonly<Record<string, string>>;

/** Fields to set with their values, then fields to remove: before each list its length. */
function listChanges(before: Fields, next: Fields): (string | number)[] {
  const set = Object.entries(next)
    .filter(([field, value]) => before[field] !== value)
    .flat();
  const removed = Object.keys(before).filter((field) => next[field] === undefined);
  return [set.length, ...set, removed.length, ...removed];
}
