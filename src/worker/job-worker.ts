import { type Job, type Telemetry, UnrecoverableError, WaitingError, Worker, type WorkerOptions } from 'bullmq';
import { type Clock, every, isAborted, within } from '../base/clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Logger } from '../base/logger.js';
import { countDueJobs } from '../queues/job-balance.js';
import type { PayoutJobData, PayoutQueues, QUEUE_NAMES } from '../queues/payout-queues.js';
import type { RedisClient } from '../base/redis.js';
import type { WorkerObserver } from './sender/worker-observer.js';

/** Limiter window, in ms; also the longest wait for the limiter, wherever a wall clock jumps meanwhile. */
export const LIMITER_MS = 1_000;

/**
 * How soon a job whose worker was killed is run again, and how often that may happen before BullMQ fails it. The
 * ledger makes a re-run harmless, so it may come early and often. Each check costs some commands, also where no job runs:
 * a job waits for two of them at most, about as long as a takeover with its quarantine takes.
 */
export const STALLED_JOBS = { lockDuration: 6_000, stalledInterval: 10_000, maxStalledCount: 1_000_000 };

/**
 * For how long a worker without jobs waits before it asks again, in s. A job that is added ends the wait at once; asking
 * only finds what stands in the queue although its marker was lost.
 */
const DRAIN_DELAY_S = 20;

/**
 * What BullMQ keeps of finished jobs: enough for the dashboard; the ledger keeps the payouts themselves. Of a poll that
 * found its payout completed there is nothing to see, and keeping it costs five commands.
 */
const KEPT_JOBS: Record<QueueName, Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'>> = {
  withdraw: { removeOnComplete: { count: 100 }, removeOnFail: { count: 1_000 } },
  transactionstatus: { removeOnComplete: { count: 0 }, removeOnFail: { count: 1_000 } },
};

/** BullMQ waits without a limit for an unavailable Redis, to complete a job whose outcome the ledger already has. */
const CLOSE_WITHIN_MS = 5_000;

/** What every job worker of an account shares. */
export interface JobWorkerContext {
  /** BullMQ's own: its commands may wait without a limit. */
  readonly redis: RedisClient;
  readonly prefix: string;
  /** To see, apart from BullMQ, whether there are jobs to run. */
  readonly connection: LedgerConnection;
  readonly queues: PayoutQueues;
  readonly clock: Clock;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

type QueueName = (typeof QUEUE_NAMES)[keyof typeof QUEUE_NAMES];

/** Runs a job. @returns the text that the dashboard shows for the completed job */
type RunJob = (job: Job<PayoutJobData, string>, token: string | undefined) => Promise<string>;

interface JobWorkerOptions extends JobWorkerContext {
  readonly queue: QueueName;
  readonly run: RunJob;
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

/** Starts a BullMQ worker for one queue of an account, and another one in its place where it hangs. */
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
      // Another process may take all that the rate allows.
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

/** A BullMQ worker that says for how long it has run no job, and that runs none any more once it was abandoned. */
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

  /** Since it last ran a job, in ms; 0 while it runs one. */
  get idleMs(): number {
    return this.#running > 0 ? 0 : this.#clock.now() - this.#ranAt;
  }

  /** Ends it without waiting for anything, because what hangs may never end. No job of it is running. */
  abandon(): void {
    this.#isAbandoned = true;
    // What it throws went to its listener for errors.
    void this.#worker.close(true).catch(() => undefined);
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // Unlike BullMQ's close, its pause can be given up. It fails if the connection that waits for jobs cannot be opened again.
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

/** A worker that was abandoned came back with a job: it is for the one in its place. */
async function putBack(job: Job, token: string | undefined): Promise<never> {
  // Where this fails, the job is taken for stalled and run again all the same.
  await job.moveToWait(token).catch(() => undefined);
  throw new WaitingError();
}

interface HungWorkerOptions {
  readonly clock: Clock;
  /** For how long the present worker has run no job, in ms. */
  readonly idleMs: () => number;
  /** Jobs that a worker could run now. @throws RedisUnavailableError */
  readonly countDue: () => Promise<number>;
  /** Puts a new worker in the place of the present one. Returns at once. */
  readonly replace: () => void;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 15_000;

/** A BullMQ worker that is well asks Redis for a job after twenty seconds without one at the latest. */
const HUNG_AFTER_MS = 30_000;

/**
 * Replaces a BullMQ worker that hangs: after a failover of a Redis Cluster one was seen to wait for its connection without
 * an end. It hangs if there are jobs at every check of half a minute, and it runs none. Runs until the signal is aborted.
 */
async function replaceWhenHung(options: HungWorkerOptions, signal: AbortSignal): Promise<void> {
  const { clock, idleMs, countDue, replace, logger } = options;
  let dueSince: number | undefined;
  const check = async (): Promise<void> => {
    const due = idleMs() < CHECK_EVERY_MS ? 0 : await countDue();
    // It may have run one while Redis was asked.
    const isSuspected = due > 0 && idleMs() >= CHECK_EVERY_MS && !isAborted(signal);
    dueSince = isSuspected ? (dueSince ?? clock.now()) : undefined;
    if (dueSince === undefined || clock.now() - dueSince < HUNG_AFTER_MS) return;
    logger.warn({ due, idleMs: Math.round(idleMs()) }, 'the BullMQ worker hangs with jobs to run; replaced it');
    replace();
    dueSince = undefined;
  };
  const onError = ({ message }: Error): void => {
    // While Redis is unavailable, nothing can be said of the worker.
    dueSince = undefined;
    logger.debug({ error: message }, 'jobs could not be counted');
  };
  await every(CHECK_EVERY_MS, check, { clock, signal, onError, waitsFirst: true });
}

/**
 * Ends a job among the failed ones, where operators look for it, although nothing in the code failed: the message says all.
 * Without a stack trace, which would only take room in Redis and hide the message on Bull Board.
 */
export class ExpectedEndError extends UnrecoverableError {
  constructor(message: string) {
    super(message);
    this.stack = '';
  }
}
