import { fromUnits, toUnits } from '../../base/decimal.js';
import type { PaymentFacts } from '../../ledger/reads/payment-facts.js';
import { type StateChange, type StateEvent, STREAM_BEGINNING } from '../../ledger/reads/state-events.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import {
  COUNTED_TODAY,
  type CountedToday,
  type CurrencySum,
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  type MinuteStatistics,
  parseField,
  parseHourFields,
  toHourFields,
} from '../../ledger/reads/statistics.js';

type MinuteCounters = { -readonly [Field in keyof MinuteStatistics]: MinuteStatistics[Field] };

export interface Counters {
  position: string;
  readonly minutes: Map<number, MinuteCounters>;
  sums: Record<PayoutState, CurrencyTallies>;
  /** Separate from the sums: backlogs are counted without amounts. */
  queued: number;
  today: { readonly day: number; readonly tallies: Record<CountedToday, CurrencyTallies> };
  lastSendAt: number | undefined;
  /** The send whose outcome is still unknown. */
  begun: { readonly payoutId: string; readonly at: number } | undefined;
}

/** The sender's measured gap between two writes. */
export interface SendGap {
  /** Approximate time of the second write: wall clock, ms. */
  readonly at: number;
  readonly gapMs: number;
}

/** Minutes are kept for 24 hours, by whole hours. */
const KEPT_HOURS = 24;

export function emptyCounters(): Counters {
  return {
    position: STREAM_BEGINNING,
    minutes: new Map(),
    sums: tallyEach(PAYOUT_STATES),
    queued: 0,
    today: { day: 0, tallies: tallyEach(COUNTED_TODAY) },
    lastSendAt: undefined,
    begun: undefined,
  };
}

export function tallyEach<Name extends string>(names: readonly Name[]): Record<Name, CurrencyTallies> {
  return Object.fromEntries(names.map((name) => [name, new CurrencyTallies()])) as Record<Name, CurrencyTallies>;
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
  if (from !== undefined) counters.sums[from].add(facts, -1);
  counters.sums[to].add(facts, 1);
  countToday(counters, at, facts, isSent ? ['sent', to] : [to]);
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
export function countGap(counters: Counters, { at, gapMs }: SendGap): void {
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
  if (day > counters.today.day) counters.today = { day, tallies: tallyEach(COUNTED_TODAY) };
  for (const kind of COUNTED_TODAY) if (kinds.includes(kind)) counters.today.tallies[kind].add(facts, 1);
}

/** Drops minutes of hours that ended a day ago. */
export function dropOldMinutes({ minutes }: Counters): void {
  const newest = Math.max(...minutes.keys());
  const oldestHour = Math.floor((newest * MINUTE_MS) / HOUR_MS) - KEPT_HOURS;
  for (const [number, { at }] of minutes) if (at < oldestHour * HOUR_MS) minutes.delete(number);
}

interface Tally {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  count: number;
  units: bigint;
}

/** Exact sums for each currency id and symbol. */
export class CurrencyTallies {
  readonly #tallies = new Map<string, Tally>();

  constructor(sums: readonly CurrencySum[] = []) {
    for (const { paymentId, symbol, count, amount } of sums) {
      this.#tallies.set(keyOf(paymentId, symbol), { paymentId, symbol, count, units: toUnits(amount) });
    }
  }

  /** @param times - -1 takes the payout out */
  add({ paymentId, symbol, amount }: PaymentFacts, times: 1 | -1): void {
    const key = keyOf(paymentId, symbol);
    const tally = this.#tallies.get(key) ?? { paymentId, symbol, count: 0, units: 0n };
    tally.count += times;
    tally.units += BigInt(times) * toUnits(amount);
    if (tally.count === 0 && tally.units === 0n) this.#tallies.delete(key);
    else this.#tallies.set(key, tally);
  }

  get count(): number {
    return [...this.#tallies.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** By currency id, then by symbol. */
  list(): CurrencySum[] {
    return [...this.#tallies.values()]
      .map(({ paymentId, symbol, count, units }) => ({ paymentId, symbol, count, amount: fromUnits(units) }))
      .sort((one, other) => one.paymentId - other.paymentId || (one.symbol ?? '').localeCompare(other.symbol ?? ''));
  }
}

function keyOf(paymentId: number, symbol: string | undefined): string {
  return `${paymentId} ${symbol ?? ''}`;
}

/** The counters' Redis hash. Each field is JSON. */
export type CounterFields = Readonly<Record<string, string>>;

/** Counters of another version are not read; events and ledger are counted again. */
const VERSION = 1;

export function toFields(counters: Counters): CounterFields {
  const { position, sums, today, lastSendAt, begun, minutes } = counters;
  const single = stringify({
    version: VERSION,
    position,
    sums: listEach(PAYOUT_STATES, sums),
    today: { day: today.day, ...listEach(COUNTED_TODAY, today.tallies) },
    lastSendAt,
    begun,
  });
  return { ...single, ...toHourFields(minutes.values()) };
}

/** @returns undefined if there are none, or their version differs */
export function parseFields(fields: CounterFields): Counters | undefined {
  const position = parseField(fields['position']) as string | undefined;
  const sums = parseField(fields['sums']) as Record<PayoutState, CurrencySum[]> | undefined;
  const today = parseField(fields['today']) as (Record<CountedToday, CurrencySum[]> & { day: number }) | undefined;
  const isKnown = parseField(fields['version']) === VERSION;
  if (!isKnown || position === undefined || sums === undefined || today === undefined) return undefined;
  const tallied = tallyListed(PAYOUT_STATES, sums);
  return {
    ...emptyCounters(),
    position,
    sums: tallied,
    queued: tallied.queued.count,
    today: { day: today.day, tallies: tallyListed(COUNTED_TODAY, today) },
    lastSendAt: parseField(fields['lastSendAt']) as Counters['lastSendAt'],
    begun: parseField(fields['begun']) as Counters['begun'],
    minutes: new Map(parseHourFields(fields).map((minute) => [minute.at / MINUTE_MS, { ...minute }])),
  };
}

function stringify(values: Readonly<Record<string, unknown>>): CounterFields {
  return Object.fromEntries(
    Object.entries(values).flatMap(([field, value]) => (value === undefined ? [] : [[field, JSON.stringify(value)]])),
  );
}

function listEach<Name extends string>(
  names: readonly Name[],
  tallies: Readonly<Record<Name, CurrencyTallies>>,
): Record<string, CurrencySum[]> {
  return Object.fromEntries(names.map((name) => [name, tallies[name].list()]));
}

function tallyListed<Name extends string>(
  names: readonly Name[],
  sums: Readonly<Partial<Record<Name, CurrencySum[]>>>,
): Record<Name, CurrencyTallies> {
  return Object.fromEntries(names.map((name) => [name, new CurrencyTallies(sums[name] ?? [])])) as Record<
    Name,
    CurrencyTallies
  >;
}
