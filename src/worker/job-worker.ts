import { WaitingError, Worker, type Job, type Telemetry, type WorkerOptions } from 'bullmq';
import { within, type Clock } from '../clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Logger } from '../logger.js';
import { countDueJobs } from '../queues/count-due-jobs.js';
import type { PayoutJobData, PayoutQueues, QUEUE_NAMES } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';
import { replaceWhenHung } from './replace-hung-worker.js';
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
export const DRAIN_DELAY_S = 20;

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

export interface JobWorkerOptions extends JobWorkerContext {
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
  const { queue, queues, connection, clock, observer } = options;
  const logger = options.logger.child({ queue });
  const stop = new AbortController();
  let worker = new ReplaceableWorker(options);
  const watching = {
    ...{ clock, logger },
    idleMs: () => worker.idleMs,
    countDue: async () => countDueJobs(connection, queues[queue]),
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

/** A BullMQ worker that says whether it lives, and that runs no job any more once it was abandoned. */
class ReplaceableWorker {
  readonly #worker: FetchingWorker;
  readonly #clock: Clock;
  #running = 0;
  #seenAt: number;
  #isAbandoned = false;

  constructor({ queue, run, redis, prefix, concurrency, ratePerSecond, clock, logger, telemetry }: JobWorkerOptions) {
    this.#clock = clock;
    this.#seenAt = clock.now();
    this.#worker = new FetchingWorker(queue, async (job, token) => this.#run(run, job, token), {
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
    this.#worker.onFetch = () => (this.#seenAt = clock.now());
    this.#worker.isBusy = () => this.#running > 1;
    this.#worker.on('error', (error) => {
      logger.debug({ error: error.message }, `${queue} queue error`);
    });
  }

  /** Since it last looked for a job, in ms; 0 while it runs one. */
  get idleMs(): number {
    return this.#running > 0 ? 0 : this.#clock.now() - this.#seenAt;
  }

  /** Ends it without waiting for anything, because what hangs may never end. No job of it is running. */
  abandon(): void {
    this.#isAbandoned = true;
    // What it throws went to its listener for errors.
    void this.#worker.close(true).catch(() => undefined);
  }

  async close(): Promise<void> {
    const isClosed = await within(
      CLOSE_WITHIN_MS,
      this.#worker.close().then(() => true),
    );
    if (isClosed === undefined) this.#worker.release();
  }

  async #run(run: RunJob, job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    if (this.#isAbandoned) return putBack(job, token);
    this.#running += 1;
    try {
      return await run(job, token);
    } finally {
      this.#running -= 1;
      this.#seenAt = this.#clock.now();
    }
  }
}

/** A worker that was abandoned came back with a job: it is for the one in its place. */
async function putBack(job: Job, token: string | undefined): Promise<never> {
  // Where this fails, the job is taken for stalled and run again all the same.
  await job.moveToWait(token).catch(() => undefined);
  throw new WaitingError();
}

class FetchingWorker extends Worker<PayoutJobData, string> {
  /** Called whenever it asks Redis for a job. */
  onFetch: () => void = () => undefined;
  /** Whether several jobs run: then jobs come faster than they end, and there is mostly one more. */
  isBusy: () => boolean = () => false;
  /** The last fetch brought a job, and with it a marker that this worker has not taken yet. */
  #hasMarker = false;

  /** Ends what would keep the process alive where its own closing hangs. */
  release(): void {
    void this.lockManager.close();
    void this.backend.close(true).catch(() => undefined);
  }

  protected override async moveToActive(
    ...args: Parameters<Worker<PayoutJobData, string>['moveToActive']>
  ): ReturnType<Worker<PayoutJobData, string>['moveToActive']> {
    this.onFetch();
    if (this.#hasMarker && !this.isBusy()) {
      // BullMQ would ask for one more job at once, and find none where polls come one by one. With each job that it hands
      // out it puts a marker into the queue: waiting for that ends at once, and only then is it worth asking again.
      this.#hasMarker = false;
      return this.nextJobFromJobData();
    }
    const job = await super.moveToActive(...args);
    // Undefined where there is none, whatever its type says.
    this.#hasMarker = (job as unknown) !== undefined;
    return job;
  }

  /** Called before it waits for a marker. */
  protected override getBlockTimeout(blockUntil: number): number {
    this.#hasMarker = false;
    return super.getBlockTimeout(blockUntil);
  }
}
