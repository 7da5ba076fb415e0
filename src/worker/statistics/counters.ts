import { DAY_MS } from '../../base/clock.js';
import { POSITION } from '../../ledger/reads/batches.js';
import {
  CurrencyTallies,
  listStates,
  type StateTallies,
  parseStates,
  tallyStates,
} from '../../ledger/reads/currency-tallies.js';
import type { PaymentFacts } from '../../ledger/payment-facts.js';
import { type StateChange, type StateEvent, STREAM_BEGINNING } from '../../ledger/reads/state-events.js';
import type { PayoutState } from '../../ledger/states.js';
import {
  COUNTED_TODAY,
  type CountedToday,
  type CurrencySum,
  HOUR_MS,
  MINUTE_MS,
  type MinuteStatistics,
  parseHourFields,
  readFields,
  type StatisticsFields,
  toHourFields,
} from '../../ledger/reads/statistics.js';

type MinuteCounters = { -readonly [Field in keyof MinuteStatistics]: MinuteStatistics[Field] };

export interface Counters {
  position: string;
  readonly minutes: Map<number, MinuteCounters>;
  sums: StateTallies;
  batches: Map<string, StateTallies>;
  /** Separate from the sums: backlogs are counted without amounts. */
  queued: number;
  today: { readonly day: number; readonly tallies: Record<CountedToday, CurrencyTallies> };
  lastSendAt: number | undefined;
  /** The last {@link PACE_GAPS} gaps without idle time, in ms. */
  pace: readonly number[];
  /** The send whose outcome is still unknown. */
  begun: { readonly payoutId: string; readonly at: number } | undefined;
}

/** The sender's measured gap between two writes. */
export interface SendGap {
  /** Approximate time of the second write: wall clock, ms. */
  readonly at: number;
  readonly gapMs: number;
  /** No idle time is in it. */
  readonly hadToWait: boolean;
}

const PACE_GAPS = 20;

/** Minutes are kept for 24 hours, by whole hours. */
const KEPT_HOURS = 24;

export function emptyCounters(): Counters {
  return {
    position: STREAM_BEGINNING,
    minutes: new Map(),
    sums: tallyStates(),
    batches: new Map(),
    queued: 0,
    today: { day: 0, tallies: tallyToday() },
    lastSendAt: undefined,
    pace: [],
    begun: undefined,
  };
}

/**
 * Counts the next event after `position`.
 * @param facts - of its payout; an event without them enters no sum
 */
export function countEvent(
  counters: Counters,
  { eventId, at, change }: StateEvent,
  facts: PaymentFacts | undefined,
): void {
  counters.position = eventId;
  if (change === undefined) return;
  const { from, to } = change;
  const minute = openMinute(counters, at);
  counters.queued += Number(to === 'queued') - Number(from === 'queued');
  minute.backlog = counters.queued;
  if (to === 'completed' || to === 'rejected' || to === 'unknown') minute[to] += 1;
  const isSent = followSend(counters, change, at);
  if (facts === undefined) return;
  if (from !== undefined) tally(counters, from, facts, -1);
  tally(counters, to, facts, 1);
  countToday(counters, at, facts, isSent ? ['sent', to] : [to]);
}

/** The JSON of batches since they last changed: that of 500 takes tens of ms, and most steps change few. */
const batchTexts = new WeakMap<StateTallies, string>();

function batchText(tallies: StateTallies): string {
  const text = batchTexts.get(tallies) ?? JSON.stringify(listStates(tallies));
  batchTexts.set(tallies, text);
  return text;
}

export type Tallies = Pick<Counters, 'sums' | 'batches'>;

/** More would make each write of the statistics slow. Others are counted for each reader. */
const KEPT_BATCHES = 500;

export function tally({ sums, batches }: Tallies, state: PayoutState, facts: PaymentFacts, times: 1 | -1): void {
  sums[state].add(facts, times);
  if (facts.batch === undefined) return;
  const tallies = batches.get(facts.batch) ?? tallyStates();
  tallies[state].add(facts, times);
  batchTexts.delete(tallies);
  // The last changed is the last to go.
  batches.delete(facts.batch);
  if (Object.values(tallies).some(({ count }) => count !== 0)) batches.set(facts.batch, tallies);
  const [oldest = ''] = batches.keys();
  if (batches.size > KEPT_BATCHES) batches.delete(oldest);
}

/** Whether an event needs its amount for the day's sums. */
export function isCountedByDay({ from, to }: StateChange): boolean {
  return COUNTED_TODAY.some((kind) => kind === to) || (from === 'sending' && to !== 'queued');
}

/** Counts a send at its outcome, for the minute of its begin, because a payout that is put back was not sent. */
function followSend(counters: Counters, { payoutId, from, to }: StateChange, at: number): boolean {
  const isSent = from === 'sending' && to !== 'queued';
  if (isSent) {
    const begunAt = counters.begun?.payoutId === payoutId ? counters.begun.at : at;
    const minute = openMinute(counters, begunAt);
    minute.sent += 1;
    counters.lastSendAt = begunAt;
  }
  if (to === 'sending') counters.begun = { payoutId, at };
  else if (from === 'sending') counters.begun = undefined;
  return isSent;
}

/** Events cannot give gaps: a begin waits, so wall clocks of begins show less than a second. */
export function countGap(counters: Counters, { at, gapMs, hadToWait }: SendGap): void {
  if (hadToWait) counters.pace = [...counters.pace, gapMs].slice(-PACE_GAPS);
  const minute = openMinute(counters, at);
  minute.smallestGapMs = Math.min(gapMs, minute.smallestGapMs ?? gapMs);
  minute.largestGapMs = Math.max(gapMs, minute.largestGapMs ?? gapMs);
}

function openMinute({ minutes, queued }: Counters, at: number): MinuteCounters {
  const number = Math.floor(at / MINUTE_MS);
  const known = minutes.get(number);
  if (known !== undefined) return known;
  const minute: MinuteCounters = {
    at: number * MINUTE_MS,
    sent: 0,
    smallestGapMs: undefined,
    largestGapMs: undefined,
    completed: 0,
    rejected: 0,
    unknown: 0,
    backlog: queued,
  };
  minutes.set(number, minute);
  return minute;
}

/** A send counts on the day of its outcome, so each counts on exactly one day. */
function countToday(counters: Counters, at: number, facts: PaymentFacts, kinds: readonly string[]): void {
  const day = Math.floor(at / DAY_MS);
  if (day > counters.today.day) counters.today = { day, tallies: tallyToday() };
  for (const kind of COUNTED_TODAY) if (kinds.includes(kind)) counters.today.tallies[kind].add(facts, 1);
}

/** Drops minutes of hours that ended a day ago. */
export function dropOldMinutes({ minutes }: Counters): void {
  const newest = Math.max(...minutes.keys());
  const oldestHour = Math.floor((newest * MINUTE_MS) / HOUR_MS) - KEPT_HOURS;
  for (const [number, { at }] of minutes) if (at < oldestHour * HOUR_MS) minutes.delete(number);
}

/** Counters of another version are not read; events and ledger are counted again. */
const VERSION = 1;

/** Each field is JSON. */
export function toFields(counters: Counters): StatisticsFields {
  const { position, sums, batches, today, lastSendAt, pace, begun, minutes } = counters;
  const single = stringify({
    version: VERSION,
    position,
    sums: listStates(sums),
    today: { day: today.day, ...listEach(today.tallies) },
    lastSendAt,
    pace,
    begun,
  });
  const kept = [...batches].map(([batch, tallies]) => [batch, batchText(tallies)] as const);
  return {
    statistics: { ...single, ...toHourFields(minutes.values()) },
    batches: { ...stringify({ [POSITION]: position }), ...Object.fromEntries(kept) },
  };
}

/** @returns undefined if there are none, their version differs, or someone altered them */
export function parseFields({ statistics: fields, batches }: StatisticsFields): Counters | undefined {
  const { version, position, sums, today, lastSendAt, pace = [], begun } = readFields(fields);
  if (version !== VERSION || position === undefined || sums === undefined || today === undefined) return undefined;
  const tallied = tallyStates(sums);
  return {
    ...emptyCounters(),
    position,
    sums: tallied,
    batches: new Map(
      Object.entries(batches)
        .filter(([batch]) => batch !== POSITION)
        .map(([batch, text]) => [batch, parseStates(text) ?? tallyStates()]),
    ),
    queued: tallied.queued.count,
    today: { day: today.day, tallies: tallyToday(today) },
    lastSendAt,
    pace,
    begun,
    minutes: new Map(parseHourFields(fields).map((minute) => [minute.at / MINUTE_MS, { ...minute }])),
  };
}

function stringify(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([field, value]) => (value === undefined ? [] : [[field, JSON.stringify(value)]])),
  );
}

type TodayTallies = Counters['today']['tallies'];

function tallyToday(sums: Partial<Record<CountedToday, readonly CurrencySum[]>> = {}): TodayTallies {
  return Object.fromEntries(COUNTED_TODAY.map((kind) => [kind, new CurrencyTallies(sums[kind])])) as TodayTallies;
}

function listEach(tallies: TodayTallies): object {
  return Object.fromEntries(COUNTED_TODAY.map((kind) => [kind, tallies[kind].list()]));
}
