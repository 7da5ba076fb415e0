import { MINUTE_MS, parseHourFields, toHourFields } from '../../ledger/minute-rows.js';
import { COUNTED_TODAY, parseField, type CountedToday, type CurrencySum } from '../../ledger/statistics.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import { emptyCounters, type Counters } from './counters.js';
import { CurrencyTallies } from './currency-tallies.js';

/** How the counters stand in their Redis hash: each field is JSON. */
export type CounterFields = Readonly<Record<string, string>>;

/** Counters of another version are not read: the events and the ledger are counted again. */
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

/** @returns undefined where there are none, or those of another version */
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
