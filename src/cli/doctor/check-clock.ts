import type { Clock } from '../../clock.js';
import { CLOCK_OFFSET_MAX_MS, describeClockOffset, readClockOffset } from '../../ledger/clock-offset.js';
import type { RedisClient } from '../../redis.js';
import { ok, problem, warning, type CheckResult } from './check-result.js';

const NAME = 'system clock';
const EARLIEST = Date.UTC(2025, 0, 1);
const FIX = 'Synchronise the clock with NTP.';

/**
 * Whether the wall clock is plausible. No send depends on it, but `notBefore`, histories and certificates do.
 * @param redis - undefined while it is unavailable: there is no other clock to compare with then
 */
export async function checkClock(clock: Clock, redis: RedisClient | undefined): Promise<CheckResult> {
  const date = new Date(clock.wallNow()).toISOString();
  if (clock.wallNow() < EARLIEST) return problem(NAME, `${date} is in the past`, FIX);
  if (redis === undefined) return ok(NAME, date);
  const offsetMs = await readClockOffset(clock, redis);
  if (Math.abs(offsetMs) > CLOCK_OFFSET_MAX_MS) return warning(NAME, `${date}, ${describeClockOffset(offsetMs)}`, FIX);
  return ok(NAME, `${date}, in line with the clock of Redis`);
}
