import { every, type Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import { ClockStepDetector, readLocalClock, type ClockReading } from './redis-clocks.js';
import { LIMITER_MS, STALLED_JOBS } from './job-worker.js';

interface ClockJumpRepairOptions {
  readonly clock: Clock;
  readonly queues: PayoutQueues;
  /** In ms. */
  readonly longestPollDelayMs: number;
  readonly logger: Logger;
}

interface ClockJumpWatchOptions extends ClockJumpRepairOptions {
  readonly readRedisClock: () => ClockReading | undefined;
  readonly isSender: () => boolean;
}

/** Clocks of two machines may differ by this without a jump, in ms. */
const CLOCKS_DIFFER_MS = 1_000;

const LOOK_EVERY_MS = 1_000;

/** Work in progress at the jump may write an old time into the queues once more. */
const REPAIRS_AFTER_JUMP = 3;

/** The sender also repairs what an ended process, or one with a wrong clock, left. */
const SENDER_REPAIRS_EVERY_MS = 60_000;

/**
 * Keeps an account's queues running after a wall clock was set back. Without it, limiter and poll delays block for as
 * long as the clock went back. Each process watches its own clock and that of Redis. It reads the queues only after a
 * jump, at a takeover and once a minute. Runs until the signal is aborted.
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
    // Before a takeover, another process does the sender's repairs.
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

class StepWatch {
  readonly #options: Pick<ClockJumpWatchOptions, 'clock' | 'readRedisClock'>;
  readonly #local = new ClockStepDetector();
  readonly #redis = new ClockStepDetector();

  constructor(options: Pick<ClockJumpWatchOptions, 'clock' | 'readRedisClock'>) {
    this.#options = options;
  }

  /** @returns whether a clock was set back since the last look */
  look(): boolean {
    const { clock, readRedisClock } = this.#options;
    const isLocal = this.#local.note(readLocalClock(clock));
    const reading = readRedisClock();
    const isRedis = reading !== undefined && this.#redis.note(reading);
    return isLocal || isRedis;
  }
}

/** Repairs the queues once. Delays of the `withdraw` queue come from `notBefore`, a date, so they stay. */
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
