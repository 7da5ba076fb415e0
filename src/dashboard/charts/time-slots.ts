import type { AccountStatistics } from '../../ledger/statistics.js';

/** How far back the pictures reach. */
export type Range = 'hour' | 'day';

/** A part of the time that is shown. */
export interface TimeSlot {
  /** Its beginning, wall clock, ms. */
  readonly at: number;
  readonly minutes: number;
  readonly sent: number;
  readonly smallestGapMs: number | undefined;
  readonly largestGapMs: number | undefined;
  /** Queued payouts at its end; undefined before the first event that is known. */
  readonly backlog: number | undefined;
}

const MINUTE_MS = 60_000;

/** Slots of a picture: one a minute, or one a quarter of an hour. */
export const PICTURE_SLOTS = { hour: { count: 60, minutes: 1 }, day: { count: 96, minutes: 15 } } as const;

/** Rows of the table that says the same in figures. */
export const TABLE_SLOTS = { hour: { count: 12, minutes: 5 }, day: { count: 24, minutes: 60 } } as const;

interface Slots {
  readonly count: number;
  /** Of each slot. */
  readonly minutes: number;
}

/** Divides the time before `wallNow` into equal slots, oldest first; the last one has not ended yet. */
export function toTimeSlots(
  minutes: AccountStatistics['minutes'],
  { count, minutes: length }: Slots,
  wallNow: number,
): TimeSlot[] {
  const lengthMs = length * MINUTE_MS;
  const end = (Math.floor(wallNow / lengthMs) + 1) * lengthMs;
  const start = end - count * lengthMs;
  let backlog = minutes.findLast(({ at }) => at < start)?.backlog;
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * lengthMs;
    const inside = minutes.filter((minute) => minute.at >= at && minute.at < at + lengthMs);
    backlog = inside.at(-1)?.backlog ?? backlog;
    const smallest = inside.flatMap(({ smallestGapMs }) => smallestGapMs ?? []);
    const largest = inside.flatMap(({ largestGapMs }) => largestGapMs ?? []);
    return {
      at,
      minutes: length,
      sent: inside.reduce((sum, { sent }) => sum + sent, 0),
      smallestGapMs: smallest.length === 0 ? undefined : Math.min(...smallest),
      largestGapMs: largest.length === 0 ? undefined : Math.max(...largest),
      backlog,
    };
  });
}
