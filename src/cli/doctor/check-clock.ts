import type { Clock } from '../../clock.js';
import type { RedisClient } from '../../redis.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const NAME = 'system clock';
const EARLIEST = Date.UTC(2025, 0, 1);
const DIFFERENCE_MAX_MS = 5_000;
const FIX = 'Synchronise the clock with NTP.';

/**
 * Whether the wall clock is plausible. No send depends on it, but `notBefore`, histories and certificates do.
 * @param redis - undefined while it is unavailable: there is no other clock to compare with then
 */
export async function checkClock(clock: Clock, redis: RedisClient | undefined): Promise<CheckResult> {
  const date = new Date(clock.wallNow()).toISOString();
  if (clock.wallNow() < EARLIEST) return problem(NAME, `${date} is in the past`, FIX);
  if (redis === undefined) return ok(NAME, date);
  const before = clock.wallNow();
  const [seconds, microseconds] = await redis.time();
  const after = clock.wallNow();
  const differenceMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - (before + after) / 2;
  const shown = `${(Math.abs(differenceMs) / 1_000).toFixed(1)} s ${differenceMs < 0 ? 'ahead of' : 'behind'} the clock of Redis`;
  if (Math.abs(differenceMs) > DIFFERENCE_MAX_MS) return warning(NAME, `${date}, ${shown}`, FIX);
  return ok(NAME, `${date}, in line with the clock of Redis`);
}
