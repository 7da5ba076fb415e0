/** Each field `hour:<number>` in Redis has the minutes of an hour, as rows without names. */

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

const PREFIX = 'hour:';

/** One minute by Redis's clock. */
export interface MinuteStatistics {
  /** Its beginning, ms. */
  readonly at: number;
  /** Payouts that were sent, or possibly sent, without those put back unsent. */
  readonly sent: number;
  /** Between the writes of two sends of one process, including time with nothing to send. */
  readonly smallestGapMs: number | undefined;
  readonly largestGapMs: number | undefined;
  /** Payouts that entered the state. */
  readonly completed: number;
  readonly rejected: number;
  readonly unknown: number;
  /** Payouts queued at the end of the minute, or after the last event of the present one. */
  readonly backlog: number;
}

type Row = readonly [
  minute: number,
  sent: number,
  smallestGapMs: number | null,
  largestGapMs: number | null,
  completed: number,
  rejected: number,
  unknown: number,
  backlog: number,
];

export function toHourFields(minutes: Iterable<MinuteStatistics>): Record<string, string> {
  const hours: Record<string, Row[]> = {};
  for (const minute of minutes) (hours[`${PREFIX}${Math.floor(minute.at / HOUR_MS)}`] ??= []).push(toRow(minute));
  return Object.fromEntries(Object.entries(hours).map(([field, rows]) => [field, JSON.stringify(rows)]));
}

/** Oldest first. */
export function parseHourFields(fields: Readonly<Record<string, string>>): MinuteStatistics[] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(PREFIX))
    .flatMap(([, text]) => (JSON.parse(text) as Row[]).map(parseRow))
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
