import { Worker, type Job, type Telemetry } from 'bullmq';
import { within } from '../clock.js';
import type { Logger } from '../logger.js';
import type { PayoutJobData, QUEUE_NAMES } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';

/** Limiter window, in ms; also the longest wait for the limiter, wherever a wall clock jumps meanwhile. */
export const LIMITER_MS = 1_000;

/**
 * How soon a job whose worker was killed is run again, and how often that may happen before BullMQ fails it. The
 * ledger makes a re-run harmless, so it may come early and often.
 */
export const STALLED_JOBS = { lockDuration: 6_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 };

/** What BullMQ keeps of finished jobs: enough for the dashboard; the ledger keeps the payouts themselves. */
const KEPT_JOBS = { removeOnComplete: { count: 100 }, removeOnFail: { count: 1_000 } };

/** BullMQ waits without a limit for an unavailable Redis, to complete a job whose outcome the ledger already has. */
const CLOSE_WITHIN_MS = 5_000;

/** What every job worker of an account shares. */
export interface JobWorkerContext {
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

export interface JobWorkerOptions extends JobWorkerContext {
  readonly queue: (typeof QUEUE_NAMES)[keyof typeof QUEUE_NAMES];
  /** Runs a job. @returns the text that the dashboard shows for the completed job */
  readonly run: (job: Job<PayoutJobData, string>, token: string | undefined) => Promise<string>;
  /** Jobs that run at the same time in this process. */
  readonly concurrency: number;
  /** Jobs started per second, over all processes. */
  readonly ratePerSecond: number;
}

export interface JobWorker {
  /**
   * Takes no new job and waits for those that are running, but not for an unavailable Redis: what is left open then ends
   * with the connection. Safe to call twice.
   */
  close(): Promise<void>;
}

/** Starts a BullMQ worker for one queue of an account. */
export function startJobWorker(options: JobWorkerOptions): JobWorker {
  const { queue, run, redis, prefix, concurrency, ratePerSecond, logger, telemetry } = options;
  const worker = new Worker<PayoutJobData, string>(queue, run, {
    connection: redis,
    prefix,
    concurrency,
    limiter: { max: ratePerSecond, duration: LIMITER_MS },
    maximumRateLimitDelay: LIMITER_MS,
    ...STALLED_JOBS,
    ...KEPT_JOBS,
    ...(telemetry === undefined ? {} : { telemetry }),
  });
  worker.on('error', (error) => {
    logger.debug({ error: error.message }, `${queue} queue error`);
  });
  return {
    close: async () => {
      await within(CLOSE_WITHIN_MS, worker.close());
    },
  };
}
