import { z } from 'zod';
import type { Random } from './random.js';

/** Milliseconds from `min` to `max`, drawn anew for each call. */
export interface DelayRange {
  readonly min: number;
  readonly max: number;
}

const MAX_DELAY_MS = 24 * 60 * 60 * 1000;
const RULE = `must be milliseconds from 0 to ${MAX_DELAY_MS}, or {min, max} with min not above max`;
const delay = z.number().min(0, RULE).max(MAX_DELAY_MS, RULE);

/** A fixed number of milliseconds or a range of them. */
export const delayRangeField = z
  .union([delay, z.strictObject({ min: delay, max: delay }).refine(({ min, max }) => min <= max, RULE)], {
    error: RULE,
  })
  .transform((value): DelayRange => (typeof value === 'number' ? { min: value, max: value } : value));

export function drawDelayMs(range: DelayRange, random: Random): number {
  return range.min + random() * (range.max - range.min);
}
