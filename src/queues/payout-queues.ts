import { Queue, type JobsOptions, type QueueOptions, type Telemetry } from 'bullmq';
import { silentLogger, type Logger } from '../logger.js';
import { pipelined } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';
import { priorityField, type Payout } from '../ledger/payout.js';
import { queueNameOf, type StateWithJob } from '../ledger/states.js';
import { beginJobTrace, type JobTrace } from './job-trace.js';
import { shortenTimes, type QueueTimes } from './queue-times.js';

/**
 * The two BullMQ queues of an account. They are doorbells: a job says "look at this payout", the ledger says what to
 * do. A job that is lost is added again, a job that runs twice does nothing the second time.
 */

export const QUEUE_NAMES = { withdraw: 'withdraw', transactionstatus: 'transactionstatus' } as const;

/**
 * Entries of a list from its end, through which Redis walks in 2 ms. What is further from both ends of the list of waiting
 * jobs is left where it is.
 */
export const LIST_REACH = 100_000;

/** What a job carries: the payout's id, and a copy of what an operator wants to see on the dashboard. Never a secret. */
export interface PayoutJobData {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string;
  readonly txhash?: string;
}

/** The parts of a payout from which its job is made. */
export type JobSource = Pick<
  Payout,
  'payoutId' | 'paymentId' | 'amount' | 'addressTo' | 'symbol' | 'priority' | 'notBefore' | 'txhash'
> &
  JobIdSource & {
    /** The caller's trace, where the job is added later than its caller called. */
    readonly traceContext?: string;
  };

/** What a job's id is made of. */
export interface JobIdSource {
  readonly payoutId: string;
  /** How many times an operator requeued the payout; a new one has 0. @defaultValue 0 */
  readonly requeueCount?: number;
}

export interface PayoutQueuesOptions {
  /** Keeps the queue's keys in the account's own namespace and cluster slot. */
  readonly prefix: string;
  /** Wall clock, ms: from it and `notBefore` the job's delay is reckoned. */
  readonly wallNow: () => number;
  /** Traces jobs from enqueue to send, for example with `bullmq-otel`. */
  readonly telemetry?: Telemetry;
  readonly logger?: Logger;
  /** Opens the queues without writing their settings into Redis, for those who only look. @defaultValue false */
  readonly readOnly?: boolean;
}

export class PayoutQueues {
  readonly withdraw: Queue<PayoutJobData>;
  readonly transactionstatus: Queue<PayoutJobData>;
  readonly #redis: RedisClient;
  readonly #wallNow: () => number;
  readonly #telemetry: Telemetry | undefined;

  constructor(redis: RedisClient, settings: PayoutQueuesOptions) {
    const { prefix, wallNow, telemetry, logger = silentLogger, readOnly = false } = settings;
    const options: QueueOptions = {
      connection: redis,
      prefix,
      // The connection decides how long a command may wait. BullMQ's own wait for an unavailable Redis has no end, and
      // an INFO that fails while it checks the version would leave the queue broken for good.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      skipMetasUpdate: readOnly,
      ...(telemetry === undefined ? {} : { telemetry }),
    };
    this.withdraw = new Queue(QUEUE_NAMES.withdraw, options);
    this.transactionstatus = new Queue(QUEUE_NAMES.transactionstatus, options);
    for (const queue of [this.withdraw, this.transactionstatus]) {
      queue.on('error', (error) => {
        logger.debug({ queue: queue.name, error: error.message }, 'queue connection trouble');
      });
    }
    this.#redis = redis;
    this.#wallNow = wallNow;
    this.#telemetry = telemetry;
  }

  /** The queue whose jobs move the payouts of a state on. */
  queueOf(state: StateWithJob): Queue<PayoutJobData> {
    return this[queueNameOf(state)];
  }

  /**
   * Begins a span in the caller's trace for withdraw jobs that are added later, beside those of other callers.
   * @param jobs - how many
   * @returns undefined where nothing is traced
   */
  beginTrace(jobs: number): JobTrace | undefined {
    return this.#telemetry === undefined ? undefined : beginJobTrace(this.#telemetry, QUEUE_NAMES.withdraw, jobs);
  }

  /** Rings for payouts that are `queued`. A job that already exists stays as it is. */
  async addWithdrawJobs(payouts: readonly JobSource[]): Promise<void> {
    if (payouts.length === 0) return;
    const now = this.#wallNow();
    await this.withdraw.addBulk(
      payouts.map((payout) => ({
        name: QUEUE_NAMES.withdraw,
        data: toJobData(payout),
        opts: withdrawOptions(payout, now),
      })),
    );
  }

  /** Rings for payouts that are `in_progress`: their status is asked for until it is final. @param delayMs - before the first poll */
  async addStatusJobs(payouts: readonly JobSource[], delayMs: number): Promise<void> {
    const jobs = payouts.map((payout) => ({
      name: QUEUE_NAMES.transactionstatus,
      data: toJobData(payout),
      opts: { jobId: toJobId(payout), delay: delayMs },
    }));
    const [first, ...others] = jobs;
    if (first === undefined) return;
    // After each send one is added. BullMQ's bulk makes a pipeline, which copies every script that the connection knows.
    if (others.length === 0) await this.transactionstatus.add(first.name, first.data, first.opts);
    else await this.transactionstatus.addBulk(jobs);
  }

  /**
   * Takes the withdraw job of a payout that need not be sent any more out of the queue. A running job stays, and so does one
   * behind more than {@link LIST_REACH} others: BullMQ walks from the newest job to it, for 20 ms in a backlog of a million.
   * The worker finds it when its turn comes.
   */
  async removeWithdrawJob(payout: JobIdSource): Promise<void> {
    const jobId = toJobId(payout);
    if (await this.#isWithinReach(jobId)) await this.withdraw.remove(jobId);
  }

  async #isWithinReach(jobId: string): Promise<boolean> {
    const key = (name: string): string => this.withdraw.toKey(name);
    const [length, place, ...scores] = (await pipelined({ redis: this.#redis }, (pipeline) => {
      pipeline.llen(key('wait')).lpos(key('wait'), jobId, 'MAXLEN', LIST_REACH);
      for (const name of ['failed', 'completed', 'delayed', 'prioritized']) pipeline.zscore(key(name), jobId);
    })) as [number, ...(number | string | null)[]];
    return length <= LIST_REACH || [place, ...scores].some((found) => found !== null);
  }

  /**
   * Shortens what the wall clock of Redis, or of a worker, has made longer when it was put back. BullMQ keeps dates, not
   * intervals: by an hour's jump a limit of a second would stop the queue for an hour.
   * @returns how many times were shortened; 0 where no clock has jumped
   * @throws RedisUnavailableError
   */
  async repairTimes(queue: Queue, times: QueueTimes): Promise<number> {
    return shortenTimes(this.#redis, queue, times, this.#wallNow());
  }

  async close(): Promise<void> {
    await Promise.all([this.withdraw.close(), this.transactionstatus.close()]);
  }
}

/**
 * A job's id: the payout's, and its requeue count, because a payout that an operator requeues needs a new job.
 * BullMQ takes no integer and no colon; `%` and `~` cannot occur in a payoutId, so no two payouts share an id.
 */
export function toJobId({ payoutId, requeueCount = 0 }: JobIdSource): string {
  return `${payoutId.replaceAll(':', '%3A')}~${requeueCount}`;
}

/** The payout of a job. */
export function toPayoutId(jobId: string): string {
  return jobId.slice(0, jobId.lastIndexOf('~')).replaceAll('%3A', ':');
}

function toJobData({ payoutId, paymentId, amount, addressTo, symbol, txhash }: JobSource): PayoutJobData {
  return {
    payoutId,
    paymentId,
    amount,
    addressTo,
    ...(symbol === undefined ? {} : { symbol }),
    ...(txhash === undefined ? {} : { txhash }),
  };
}

function withdrawOptions(payout: JobSource, now: number): JobsOptions {
  const delay = payout.notBefore === undefined ? 0 : Date.parse(payout.notBefore) - now;
  return {
    jobId: toJobId(payout),
    // BullMQ takes no priority outside its bounds, and would add none of the jobs: an altered one counts for none.
    ...(priorityField.safeParse(payout.priority).success ? { priority: payout.priority as number } : {}),
    // Not `<= 0`: of a time that is none (NaN) the sender decides, and BullMQ would add none of the jobs. BullMQ adds the delay
    // to the job's own time: with another one for each, jobs for the same time would change their order.
    ...(delay > 0 ? { delay, timestamp: now } : {}),
    ...(payout.traceContext ? { telemetry: { metadata: payout.traceContext } } : {}),
  };
}
