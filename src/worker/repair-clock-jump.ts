import { isAborted, type Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { longestPollDelayMs } from './status-jobs.js';
import { LIMITER_MS, STALLED_JOBS } from './withdraw-jobs.js';

export interface MendQueueTimesOptions {
  readonly clock: Clock;
  readonly queues: PayoutQueues;
  readonly pollMaxMs: number;
  readonly logger: Logger;
}

/** Clocks of two machines may differ by so much without anybody having put one back, in ms. */
const CLOCKS_DIFFER_MS = 1_000;

const MEND_EVERY_MS = 1_000;

/**
 * Lets the queues of an account go on where a wall clock was put back, as it may be at any time: the limiter of a queue
 * would hold it up for as long as the clock went back, and so would the delay of every status poll. Runs until the signal
 * is aborted.
 */
export async function repairClockJumpsRegularly(options: MendQueueTimesOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  while (!isAborted(signal)) {
    try {
      await repairClockJump(options);
    } catch (error) {
      logger.debug({ error: (error as Error).message }, 'cannot look whether a wall clock was put back');
    }
    await clock.sleep(MEND_EVERY_MS, signal);
  }
}

/**
 * Does so once. Jobs of the `withdraw` queue are delayed until their `notBefore`, which is a date and stays one.
 * @throws RedisUnavailableError
 */
export async function repairClockJump({
  queues,
  pollMaxMs,
  logger,
}: Omit<MendQueueTimesOptions, 'clock'>): Promise<void> {
  const { lockDuration: lockMs, stalledInterval: stalledCheckMs } = STALLED_JOBS;
  const times = { limiterMs: LIMITER_MS, stalledCheckMs, lockMs };
  const longestDelayMs = longestPollDelayMs(pollMaxMs) + CLOCKS_DIFFER_MS;
  const [withdraw, status] = await Promise.all([
    queues.mendTimes(queues.withdraw, times),
    queues.mendTimes(queues.transactionstatus, { ...times, longestDelayMs }),
  ]);
  const mended = withdraw + status;
  if (mended > 0) logger.warn({ mended }, 'a wall clock was put back; the queues go on without waiting for it');
}
