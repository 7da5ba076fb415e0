import { type Job, type Telemetry, UnrecoverableError, WaitingError, Worker, type WorkerOptions } from 'bullmq';
import { type Clock, every, isAborted, within } from '../base/clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Logger } from '../base/logger.js';
import { countDueJobs } from '../queues/job-balance.js';
import type { PayoutJobData, PayoutQueues, QUEUE_NAMES } from '../queues/payout-queues.js';
import type { RedisClient } from '../base/redis.js';
import type { WorkerObserver } from './sender/worker-observer.js';

/** In ms; also the longest wait for the limiter after a jump of a wall clock. */
export const LIMITER_MS = 1_000;

/**
 * When and how often BullMQ runs a killed worker's job again. The ledger makes a re-run harmless, so early and often is
 * safe. A job waits for at most two checks, about as long as a takeover with its quarantine. Each check costs commands
 * even without jobs.
 */
export const STALLED_JOBS = { lockDuration: 6_000, stalledInterval: 10_000, maxStalledCount: 1_000_000 };

/**
 * How long an idle worker waits before it asks again, in s. A new job ends the wait at once. Asking finds jobs whose
 * marker was lost.
 */
const DRAIN_DELAY_S = 20;

/**
 * Finished jobs that BullMQ keeps for the dashboard; the ledger keeps the payouts. A poll of a completed payout shows
 * nothing, and keeping it costs five commands.
 */
const KEPT_JOBS: Record<QueueName, Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'>> = {
  withdraw: { removeOnComplete: { count: 100 }, removeOnFail: { count: 1_000 } },
  transactionstatus: { removeOnComplete: { count: 0 }, removeOnFail: { count: 1_000 } },
};

/** To complete a job, BullMQ waits forever for an unavailable Redis. The ledger already has the outcome. */
const CLOSE_WITHIN_MS = 5_000;

export interface JobWorkerContext {
  /** BullMQ's own: commands may wait without limit. */
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  readonly clock: Clock;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

type QueueName = (typeof QUEUE_NAMES)[keyof typeof QUEUE_NAMES];

/** @returns the dashboard's text for the completed job */
type RunJob = (job: Job<PayoutJobData, string>, token: string | undefined) => Promise<string>;

interface JobWorkerOptions extends JobWorkerContext {
  readonly queue: QueueName;
  readonly run: RunJob;
  readonly concurrency: number;
  /** Over all processes. */
  readonly ratePerSecond: number;
}

export interface JobWorker {
  /**
   * Takes no new job and waits for running ones, but not for an unavailable Redis. The connection's end drops the rest.
   * Safe to call twice.
   */
  close(): Promise<void>;
}

export function startJobWorker(options: JobWorkerOptions): JobWorker {
  const { queue, queues, connection, ratePerSecond, clock, observer } = options;
  const logger = options.logger.child({ queue });
  const stop = new AbortController();
  let worker = new ReplaceableWorker(options);
  const watching = {
    ...{ clock, logger },
    idleMs: () => worker.idleMs,
    countDue: async () => {
      const due = await countDueJobs(connection, queues[queue]);
      // Another process may use up the rate.
      return due > 0 && (await queues[queue].getRateLimitTtl(ratePerSecond)) > 0 ? 0 : due;
    },
    replace: () => {
      worker.abandon();
      worker = new ReplaceableWorker(options);
      observer.jobWorkerReplaced(queue);
    },
  };
  void replaceWhenHung(watching, stop.signal);
  return {
    close: async () => {
      stop.abort();
      await worker.close();
    },
  };
}

class ReplaceableWorker {
  readonly #worker: Worker<PayoutJobData, string>;
  readonly #clock: Clock;
  #running = 0;
  #ranAt: number;
  #isAbandoned = false;
  #closing: Promise<void> | undefined;

  constructor({ queue, run, redis, prefix, concurrency, ratePerSecond, clock, logger, telemetry }: JobWorkerOptions) {
    this.#clock = clock;
    this.#ranAt = clock.now();
    this.#worker = new Worker(queue, async (job, token) => this.#run(run, job, token), {
      connection: redis,
      prefix,
      concurrency,
      limiter: { max: ratePerSecond, duration: LIMITER_MS },
      maximumRateLimitDelay: LIMITER_MS,
      drainDelay: DRAIN_DELAY_S,
      ...STALLED_JOBS,
      ...KEPT_JOBS[queue],
      ...(telemetry === undefined ? {} : { telemetry }),
    });
    this.#worker.on('error', (error) => {
      logger.debug({ error: error.message }, `${queue} queue error`);
    });
  }

  /** Time since the last job, in ms; 0 during a job. */
  get idleMs(): number {
    return this.#running > 0 ? 0 : this.#clock.now() - this.#ranAt;
  }

  /** Ends it without waiting, because a hung worker may never end. It has no running job. */
  abandon(): void {
    this.#isAbandoned = true;
    // The error listener already got this error.
    void this.#worker.close(true).catch(() => undefined);
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // Unlike BullMQ's close, a pause can be given up. It fails if the connection that waits for jobs cannot be
    // reopened.
    const paused = this.#worker.pause().catch(() => undefined);
    await within(CLOSE_WITHIN_MS, paused);
    await within(CLOSE_WITHIN_MS, this.#worker.close(true));
  }

  async #run(run: RunJob, job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    if (this.#isAbandoned) return putBack(job, token);
    this.#running += 1;
    try {
      return await run(job, token);
    } finally {
      this.#running -= 1;
      this.#ranAt = this.#clock.now();
    }
  }
}

/** An abandoned worker took a job that belongs to its replacement. */
async function putBack(job: Job, token: string | undefined): Promise<never> {
  // If this fails, BullMQ takes the job for stalled and runs it again.
  await job.moveToWait(token).catch(() => undefined);
  throw new WaitingError();
}

interface HungWorkerOptions {
  readonly clock: Clock;
  readonly idleMs: () => number;
  readonly countDue: () => Promise<number>;
  readonly replace: () => void;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 15_000;

/** A healthy BullMQ worker asks Redis for a job within twenty seconds. */
const HUNG_AFTER_MS = 30_000;

/**
 * Replaces a hung BullMQ worker, until the signal is aborted. After a failover of a Redis Cluster, one waited forever
 * for its connection. A worker hangs if every check for half a minute finds due jobs and it runs none.
 */
async function replaceWhenHung(options: HungWorkerOptions, signal: AbortSignal): Promise<void> {
  const { clock, idleMs, countDue, replace, logger } = options;
  let dueSince: number | undefined;
  const check = async (): Promise<void> => {
    const due = idleMs() < CHECK_EVERY_MS ? 0 : await countDue();
    // The worker may have run a job during the query.
    const isSuspected = due > 0 && idleMs() >= CHECK_EVERY_MS && !isAborted(signal);
    dueSince = isSuspected ? (dueSince ?? clock.now()) : undefined;
    if (dueSince === undefined || clock.now() - dueSince < HUNG_AFTER_MS) return;
    logger.warn({ due, idleMs: Math.round(idleMs()) }, 'the BullMQ worker hangs with jobs to run; replaced it');
    replace();
    dueSince = undefined;
  };
  const onError = ({ message }: Error): void => {
    // While Redis is unavailable, the worker's state is unknown.
    dueSince = undefined;
    logger.debug({ error: message }, 'jobs could not be counted');
  };
  await every(CHECK_EVERY_MS, check, { clock, signal, onError, waitsFirst: true });
}

/**
 * Puts a job among the failed ones, for operators, although no code failed. It has no stack trace: that takes room in
 * Redis and hides the message on Bull Board.
 */
export class ExpectedEndError extends UnrecoverableError {
  constructor(message: string) {
    super(message);
    this.stack = '';
  }
}
