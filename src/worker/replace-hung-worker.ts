import { isAborted, type Clock } from '../clock.js';
import type { Logger } from '../logger.js';

export interface HungWorkerOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** For how long the present worker has neither run a job nor looked for one, in ms. */
  readonly idleMs: () => number;
  /** Jobs that a worker could run now. @throws RedisUnavailableError */
  readonly countDue: () => Promise<number>;
  /** Puts a new worker in the place of the present one. Returns at once. */
  readonly replace: () => void;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 5_000;

/**
 * A BullMQ worker that is well asks Redis for a job after twenty seconds without one at the latest, which BullMQ itself
 * ends a second later, and every second while its rate is limited.
 */
const HUNG_AFTER_MS = 30_000;

/**
 * Replaces a BullMQ worker that hangs: after a failover of a Redis Cluster one was seen to wait for its connection without
 * an end. It hangs where it does nothing although there are jobs, at two checks in a row. Runs until the signal is aborted.
 */
export async function replaceWhenHung(options: HungWorkerOptions, signal: AbortSignal): Promise<void> {
  const { clock, idleMs, replace, logger } = options;
  let isSuspected = false;
  for (;;) {
    await clock.sleep(CHECK_EVERY_MS, signal);
    if (isAborted(signal)) return;
    const due = idleMs() < HUNG_AFTER_MS ? 0 : await countDueOf(options);
    // It may have come back while Redis was asked.
    const isHung = due > 0 && idleMs() >= HUNG_AFTER_MS && !isAborted(signal);
    if (isHung && isSuspected) {
      logger.warn({ due, idleMs: Math.round(idleMs()) }, 'the BullMQ worker hangs with jobs to run; replaced it');
      replace();
    }
    isSuspected = isHung && !isSuspected;
  }
}

/** While Redis is unavailable, nothing can be said of the worker. */
async function countDueOf({ countDue, logger }: HungWorkerOptions): Promise<number> {
  try {
    return await countDue();
  } catch (error) {
    logger.debug({ error: (error as Error).message }, 'jobs could not be counted');
    return 0;
  }
}
