import type { Clock } from '../clock.js';
import type { RedisClient } from '../redis.js';

/** Beyond this, in ms, an operator should set a clock. No send depends on it, but `notBefore`, histories and certificates do. */
export const CLOCK_OFFSET_MAX_MS = 5_000;

/**
 * Compares the wall clock of this machine with that of Redis.
 * @returns how far this machine's is ahead, in ms
 * @throws what ioredis throws when the connection fails
 */
export async function readClockOffset(clock: Clock, redis: RedisClient): Promise<number> {
  const before = clock.wallNow();
  const [seconds, microseconds] = await redis.time();
  const after = clock.wallNow();
  return (before + after) / 2 - (Number(seconds) * 1_000 + Number(microseconds) / 1_000);
}

/** An offset in words, for operators. */
export function describeClockOffset(offsetMs: number): string {
  return `${(Math.abs(offsetMs) / 1_000).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the clock of Redis`;
}
