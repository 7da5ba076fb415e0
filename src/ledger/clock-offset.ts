import type { Clock } from '../base/clock.js';
import type { RedisClient } from '../base/redis.js';

/** A larger one needs an operator. No send depends on it, but `notBefore`, histories and certificates do. */
export const CLOCK_OFFSET_MAX_MS = 5_000;

/**
 * @returns how far this machine's wall clock is ahead of that of Redis, in ms
 * @throws the error of ioredis
 */
export async function readClockOffset(clock: Clock, redis: RedisClient): Promise<number> {
  const before = clock.wallNow();
  const [seconds, microseconds] = await redis.time();
  const after = clock.wallNow();
  return (before + after) / 2 - (Number(seconds) * 1_000 + Number(microseconds) / 1_000);
}

export function describeClockOffset(offsetMs: number): string {
  return `${(Math.abs(offsetMs) / 1_000).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the clock of Redis`;
}
