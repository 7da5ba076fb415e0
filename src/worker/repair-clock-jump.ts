import { every, type Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { ClockStepDetector, readLocalClock, type ClockReading } from './redis-clocks.js';
import { LIMITER_MS, STALLED_JOBS } from './job-worker.js';

interface ClockJumpRepairOptions {
  readonly clock: Clock;
  readonly queues: PayoutQueues;
  /** The longest time between two polls of a payout, in ms. */
  readonly longestPollDelayMs: number;
  readonly logger: Logger;
}

interface ClockJumpWatchOptions extends ClockJumpRepairOptions {
  /** The clock of the Redis that has the account's queues, as it was read last. */
  readonly readRedisClock: () => ClockReading | undefined;
  /** Whether this process holds the lease. */
  readonly isSender: () => boolean;
}

/** The clocks of two machines may differ by this without a jump, in ms. */
const CLOCKS_DIFFER_MS = 1_000;

const LOOK_EVERY_MS = 1_000;

/** What was under way when the clock was put back may bring the time from before into the queues once more. */
const REPAIRS_AFTER_JUMP = 3;

/** The sender also repairs what a process left that has ended, or whose clock is wrong all the time. */
const SENDER_REPAIRS_EVERY_MS = 60_000;

/**
 * Keeps the queues of an account running when a wall clock is put back, which may happen at any time: the limiter of a
 * queue would block it for as long as the clock went back, and so would the delay of every status poll. Each process
 * watches its own clock and that of Redis; Redis is asked for the queues only when one of them was put back, at a takeover
 * and once a minute. Runs until the signal is aborted.
 */
export async function repairClockJumps(options: ClockJumpWatchOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  const steps = new StepWatch(options);
  let left = 0;
  let repairedAt: number | undefined;
  const lookAndRepair = async (): Promise<void> => {
    if (steps.look()) {
      logger.debug({}, 'a wall clock was put back');
      left = REPAIRS_AFTER_JUMP;
    }
    // Before a takeover, what the sender does is none of this process's business.
    if (!options.isSender()) repairedAt = undefined;
    else if (clock.now() - (repairedAt ?? -Infinity) >= SENDER_REPAIRS_EVERY_MS) left = Math.max(left, 1);
    if (left === 0) return;
    await repairClockJump(options);
    left -= 1;
    repairedAt = clock.now();
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot check whether a wall clock was put back');
  };
  await every(LOOK_EVERY_MS, lookAndRepair, { clock, signal, onError });
}

/** The clocks by which the times of the account's queues are set. */
class StepWatch {
  readonly #options: Pick<ClockJumpWatchOptions, 'clock' | 'readRedisClock'>;
  readonly #local = new ClockStepDetector();
  readonly #redis = new ClockStepDetector();

  constructor(options: Pick<ClockJumpWatchOptions, 'clock' | 'readRedisClock'>) {
    this.#options = options;
  }

  /** Whether one of them was put back since the last look. */
  look(): boolean {
    const { clock, readRedisClock } = this.#options;
    const isLocal = this.#local.note(readLocalClock(clock));
    const reading = readRedisClock();
    const isRedis = reading !== undefined && this.#redis.note(reading);
    return isLocal || isRedis;
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
