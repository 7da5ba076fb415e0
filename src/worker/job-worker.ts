import { type Job, UnrecoverableError, WaitingError, Worker, type WorkerOptions } from 'bullmq';
import { every, isAborted, within } from '../base/clock.js';
import { ask } from '../ledger/ledger-connection.js';
import { countDueJobs } from '../queues/job-balance.js';
import type { PayoutJobData, QUEUE_NAMES } from '../queues/payout-queues.js';
import type { AccountRuntime } from './account-runtime.js';

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

/** After a failed connection, in ms. BullMQ's own 15 s delay sending after an outage, and outlast `close`. */
const ASK_AGAIN_AFTER_MS = 1_000;

/**
 * Finished jobs that BullMQ keeps for the dashboard; the ledger keeps the payouts. A poll of a completed payout shows
 * nothing, and keeping it costs five commands.
 */
const KEPT_JOBS: Record<QueueName, Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'>> = {
  withdraw: { removeOnComplete: { count: 100 }, removeOnFail: { count: 1_000 } },
  transactionstatus: { removeOnComplete: { count: 0 }, removeOnFail: { count: 1_000 } },
};

const CHECK_EVERY_MS = 15_000;

/** A healthy BullMQ worker asks Redis for a job within twenty seconds. */
const HUNG_AFTER_MS = 30_000;

/** To complete a job, BullMQ waits forever for an unavailable Redis. The ledger already has the outcome. */
const CLOSE_WITHIN_MS = 5_000;

export type JobRuntime = Pick<
  AccountRuntime,
  'queueRedis' | 'ledger' | 'queues' | 'clock' | 'observer' | 'logger' | 'telemetry'
>;

type QueueName = (typeof QUEUE_NAMES)[keyof typeof QUEUE_NAMES];

/** @returns the dashboard's text for the completed job */
type RunJob = (job: Job<PayoutJobData, string>, token: string | undefined) => Promise<string>;

interface JobLimits {
  readonly concurrency: number;
  /** Over all processes. */
  readonly ratePerSecond: number;
  /** The part of the rate that the jobs get, if something else has the rest. @defaultValue 1 */
  readonly share?: number;
}

/** Runs the jobs of a queue by BullMQ, and replaces a BullMQ worker that hangs. */
export class JobWorker {
  readonly #runtime: JobRuntime;
  readonly #queue: QueueName;
  readonly #run: RunJob;
  readonly #limits: JobLimits;
  readonly #stop = new AbortController();
  #worker: Worker<PayoutJobData, string>;
  #running = 0;
  #ranAt: number;
  #closing: Promise<void> | undefined;

  constructor(runtime: JobRuntime, queue: QueueName, run: RunJob, limits: JobLimits) {
    this.#runtime = runtime;
    this.#queue = queue;
    this.#run = run;
    this.#limits = limits;
    this.#ranAt = runtime.clock.now();
    this.#worker = this.#open();
    void this.#replaceWhenHung();
  }

  /**
   * Takes no new job and waits for running ones, but not for an unavailable Redis. The connection's end drops the rest.
   * Safe to call twice.
   */
  async close(): Promise<void> {
    this.#stop.abort();
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // Unlike BullMQ's close, a pause can be given up. It fails if the connection that waits for jobs cannot be
    // reopened.
    const paused = this.#worker.pause().catch(() => undefined);
    await within(CLOSE_WITHIN_MS, paused);
    await within(CLOSE_WITHIN_MS, this.#worker.close(true));
  }

  #open(): Worker<PayoutJobData, string> {
    const { queueRedis, ledger, clock, logger, telemetry } = this.#runtime;
    const { concurrency, ratePerSecond, share = 1 } = this.#limits;
    const queue = this.#queue;
    const runJob: RunJob = async (job, token) => {
      if (worker !== this.#worker) return putBack(job, token);
      this.#running += 1;
      try {
        return await this.#run(job, token);
      } finally {
        this.#running -= 1;
        this.#ranAt = clock.now();
      }
    };
    const worker = new Worker(queue, runJob, {
      connection: queueRedis,
      prefix: ledger.connection.keys.prefix,
      concurrency,
      // Not a smaller number of jobs: the rate may be one a second.
      limiter: { max: ratePerSecond, duration: Math.ceil(LIMITER_MS / share) },
      maximumRateLimitDelay: LIMITER_MS,
      drainDelay: DRAIN_DELAY_S,
      runRetryDelay: ASK_AGAIN_AFTER_MS,
      ...STALLED_JOBS,
      ...KEPT_JOBS[queue],
      ...(telemetry === undefined ? {} : { telemetry }),
    });
    worker.on('error', (error) => {
      logger.debug({ error: error.message }, `${queue} queue error`);
    });
    return worker;
  }

  /**
   * Replaces a hung BullMQ worker, until the end. After a failover of a Redis Cluster, one waited forever for its
   * connection. A worker hangs if every check for half a minute finds due jobs and it runs none.
   */
  async #replaceWhenHung(): Promise<void> {
    const { signal } = this.#stop;
    const { clock } = this.#runtime;
    const logger = this.#runtime.logger.child({ queue: this.#queue });
    let dueSince: number | undefined;
    const check = async (): Promise<void> => {
      const due = this.#idleMs < CHECK_EVERY_MS ? 0 : await this.#countDue();
      // The worker may have run a job during the query.
      const isSuspected = due > 0 && this.#idleMs >= CHECK_EVERY_MS && !isAborted(signal);
      dueSince = isSuspected ? (dueSince ?? clock.now()) : undefined;
      if (dueSince === undefined || clock.now() - dueSince < HUNG_AFTER_MS) return;
      const idleMs = Math.round(this.#idleMs);
      logger.warn({ due, idleMs }, 'the BullMQ worker hangs with jobs to run; replaced it');
      this.#replace();
      dueSince = undefined;
    };
    const onError = ({ message }: Error): void => {
      // While Redis is unavailable, the worker's state is unknown.
      dueSince = undefined;
      logger.debug({ error: message }, 'jobs could not be counted');
    };
    await every(CHECK_EVERY_MS, check, { clock, signal, onError, waitsFirst: true });
  }

  /** Time since the last job, in ms; 0 during a job. */
  get #idleMs(): number {
    return this.#running > 0 ? 0 : this.#runtime.clock.now() - this.#ranAt;
  }

  async #countDue(): Promise<number> {
    const { connection } = this.#runtime.ledger;
    const queue = this.#runtime.queues[this.#queue];
    // One command while the queue is empty, as it mostly is; counting takes five.
    const keys = ['wait', 'prioritized', 'delayed'].map((place) => queue.toKey(place));
    if ((await ask(connection.redis.exists(...keys))) === 0) return 0;
    const due = await countDueJobs(connection, queue);
    // Another process may use up the rate.
    return due > 0 && (await queue.getRateLimitTtl(this.#limits.ratePerSecond)) > 0 ? 0 : due;
  }

  /** Ends the hung worker without waiting, because it may never end. It has no running job. */
  #replace(): void {
    // The error listener already got this error.
    void this.#worker.close(true).catch(() => undefined);
    this.#ranAt = this.#runtime.clock.now();
    this.#worker = this.#open();
    this.#runtime.observer.jobWorkerReplaced(this.#queue);
  }
}

/** An abandoned worker took a job that belongs to its replacement. */
async function putBack(job: Job, token: string | undefined): Promise<never> {
  // If this fails, BullMQ takes the job for stalled and runs it again.
  await job.moveToWait(token).catch(() => undefined);
  throw new WaitingError();
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
