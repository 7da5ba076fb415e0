import { z } from 'zod';

/** Numbers from 0 to below 1 from the seed alone, so that a run with jitter can be repeated. */
export type Random = () => number;

/** The mulberry32 generator: small, fast and even enough for delays and shares. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Milliseconds from `min` to `max`, drawn for each call. */
export interface DelayRange {
  readonly min: number;
  readonly max: number;
}

const MAX_DELAY_MS = 24 * 60 * 60 * 1000;
const RULE = `must be milliseconds from 0 to ${MAX_DELAY_MS}, or {min, max} with min not above max`;
const delay = z.number().min(0, RULE).max(MAX_DELAY_MS, RULE);

export const delayRangeField = z
  .union([delay, z.strictObject({ min: delay, max: delay }).refine(({ min, max }) => min <= max, RULE)], {
    error: RULE,
  })
  .transform((value): DelayRange => (typeof value === 'number' ? { min: value, max: value } : value));

export function drawDelayMs(range: DelayRange, random: Random): number {
  return range.min + random() * (range.max - range.min);
}
