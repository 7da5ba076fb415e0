import { isAborted, type Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { LIMITER_MS, STALLED_JOBS } from './job-worker.js';

export interface ClockJumpRepairOptions {
  readonly clock: Clock;
  readonly queues: PayoutQueues;
  /** The longest time between two polls of a payout, in ms. */
  readonly longestPollDelayMs: number;
  readonly logger: Logger;
}

/** The clocks of two machines may differ by this without a jump, in ms. */
const CLOCKS_DIFFER_MS = 1_000;

const REPAIR_EVERY_MS = 1_000;

/**
 * Keeps the queues of an account running when a wall clock is put back, which may happen at any time: the limiter of a
 * queue would block it for as long as the clock went back, and so would the delay of every status poll. Runs until the
 * signal is aborted.
 */
export async function repairClockJumpsRegularly(options: ClockJumpRepairOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  while (!isAborted(signal)) {
    try {
      await repairClockJump(options);
    } catch (error) {
      logger.debug({ error: (error as Error).message }, 'cannot check whether a wall clock was put back');
    }
    await clock.sleep(REPAIR_EVERY_MS, signal);
  }
}

/**
 * Repairs the queues once. Jobs of the `withdraw` queue are delayed until their `notBefore`, which is a date and stays one.
 * @throws RedisUnavailableError
 */
export async function repairClockJump({
  queues,
  longestPollDelayMs,
  logger,
}: Omit<ClockJumpRepairOptions, 'clock'>): Promise<void> {
  const { lockDuration: lockMs, stalledInterval: stalledCheckMs } = STALLED_JOBS;
  const times = { limiterMs: LIMITER_MS, stalledCheckMs, lockMs };
  const longestDelayMs = longestPollDelayMs + CLOCKS_DIFFER_MS;
  const [withdraw, status] = await Promise.all([
    queues.repairTimes(queues.withdraw, times),
    queues.repairTimes(queues.transactionstatus, { ...times, longestDelayMs }),
  ]);
  const repaired = withdraw + status;
  if (repaired > 0) logger.warn({ repaired }, 'a wall clock was put back; repaired the times of the queues');
}
