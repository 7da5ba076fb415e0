import { every } from '../base/clock.js';
import type { AccountAccess } from '../queues/open-account.js';
import { ClockStepDetector, readLocalClock, type ClockReading } from './redis-clocks.js';
import { LIMITER_MS, STALLED_JOBS } from './job-worker.js';

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
export async function repairClockJumps(
  account: Pick<AccountAccess, 'queues' | 'clock' | 'logger'>,
  {
    longestPollDelayMs,
    readRedisClock,
    isSender,
  }: { longestPollDelayMs: number; readRedisClock: () => ClockReading | undefined; isSender: () => boolean },
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger } = account;
  const [local, redis] = [new ClockStepDetector(), new ClockStepDetector()];
  const wasSetBack = (): boolean => {
    const isLocal = local.note(readLocalClock(clock));
    const reading = readRedisClock();
    const isRedis = reading !== undefined && redis.note(reading);
    return isLocal || isRedis;
  };
  let left = 0;
  let repairedAt: number | undefined;
  const lookAndRepair = async (): Promise<void> => {
    if (wasSetBack()) {
      logger.debug({}, 'a wall clock was put back');
      left = REPAIRS_AFTER_JUMP;
    }
    // Before a takeover, another process does the sender's repairs.
    if (!isSender()) repairedAt = undefined;
    else if (clock.now() - (repairedAt ?? -Infinity) >= SENDER_REPAIRS_EVERY_MS) left = Math.max(left, 1);
    if (left === 0) return;
    await repairClockJump(account, longestPollDelayMs);
    left -= 1;
    repairedAt = clock.now();
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot check whether a wall clock was put back');
  };
  await every(LOOK_EVERY_MS, lookAndRepair, { clock, signal, onError });
}

/** Repairs the queues once. Delays of the `withdraw` queue come from `notBefore`, a date, so they stay. */
export async function repairClockJump(
  { queues, logger }: Pick<AccountAccess, 'queues' | 'logger'>,
  longestPollDelayMs: number,
): Promise<void> {
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
