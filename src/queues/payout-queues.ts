import { Queue, type JobsOptions, type QueueOptions, type Telemetry } from 'bullmq';
import { silentLogger, type Logger } from '../logger.js';
import { pipelined } from '../ledger/ledger-connection.js';
import type { RedisClient } from '../redis.js';
import { priorityField, type Payout } from '../ledger/payout.js';
import { queueNameOf, type StateWithJob } from '../ledger/states.js';
import { beginJobTrace, type JobTrace } from './job-trace.js';
import { shortenTimes, type QueueTimes } from './queue-times.js';

/**
 * The two BullMQ queues of an account. A job is a doorbell: it says "look at this payout", and the ledger decides what
 * to do. A lost job is added again; a second run does nothing. In this folder every function that uses Redis throws
 * RedisUnavailableError.
 */

export const QUEUE_NAMES = { withdraw: 'withdraw', transactionstatus: 'transactionstatus' } as const;

/** Entries from a list's end that Redis walks through in 2 ms. Waiting jobs further from both ends stay. */
export const LIST_REACH = 100_000;

/** The data of a job: the payout's id, and a copy of what the dashboard shows. Never a secret. */
export interface PayoutJobData {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string;
  readonly txhash?: string;
}

export type JobSource = Pick<
  Payout,
  'payoutId' | 'paymentId' | 'amount' | 'addressTo' | 'symbol' | 'priority' | 'notBefore' | 'txhash'
> &
  JobIdSource & {
    /** The caller's trace, if the job is added after the call. */
    readonly traceContext?: string;
  };

export interface JobIdSource {
  readonly payoutId: string;
  /** How many times an operator requeued the payout. @defaultValue 0 */
  readonly requeueCount?: number;
}

export interface PayoutQueuesOptions {
  /** Keeps the queue's keys in the account's namespace and cluster slot. */
  readonly prefix: string;
  /** Wall clock, ms. The job's delay is `notBefore` minus this. */
  readonly wallNow: () => number;
  readonly telemetry?: Telemetry;
  readonly logger?: Logger;
  /** For readers: writes no settings of the queues into Redis. @defaultValue false */
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
      // The connection limits how long a command waits. BullMQ would wait forever for an unavailable Redis, and an INFO
      // that fails during its version check would break the queue for good.
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

  queueOf(state: StateWithJob): Queue<PayoutJobData> {
    return this[queueNameOf(state)];
  }

  /** @returns undefined without tracing */
  beginTrace(jobs: number): JobTrace | undefined {
    return this.#telemetry === undefined ? undefined : beginJobTrace(this.#telemetry, QUEUE_NAMES.withdraw, jobs);
  }

  /** An existing job stays as it is. */
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

  /** @param delayMs - before the first poll */
  async addStatusJobs(payouts: readonly JobSource[], delayMs: number): Promise<void> {
    const jobs = payouts.map((payout) => ({
      name: QUEUE_NAMES.transactionstatus,
      data: toJobData(payout),
      opts: { jobId: toJobId(payout), delay: delayMs },
    }));
    const [first, ...others] = jobs;
    if (first === undefined) return;
    // One is added after each send. BullMQ's bulk makes a pipeline, which copies every script that the connection
    // knows.
    if (others.length === 0) await this.transactionstatus.add(first.name, first.data, first.opts);
    else await this.transactionstatus.addBulk(jobs);
  }

  /**
   * Removes the withdraw job of a payout that must not be sent. A running job stays, and so does one further than
   * {@link LIST_REACH} from both ends: the walk would take 20 ms in a backlog of a million. The worker finds it at its
   * turn.
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
   * Shortens times that became longer because the clock of Redis or a worker was put back. BullMQ keeps dates, not
   * intervals: a jump of an hour would stop the queue for an hour.
   * @returns the number of shortened times; 0 if no clock has jumped
   */
  async repairTimes(queue: Queue, times: QueueTimes): Promise<number> {
    return shortenTimes(this.#redis, queue, times, this.#wallNow());
  }

  async close(): Promise<void> {
    await Promise.all([this.withdraw.close(), this.transactionstatus.close()]);
  }
}

/**
 * The payout's id and requeue count, because a requeued payout needs a new job. BullMQ rejects integers and colons. `%`
 * and `~` cannot occur in a payoutId, so no two payouts share an id.
 */
export function toJobId({ payoutId, requeueCount = 0 }: JobIdSource): string {
  return `${payoutId.replaceAll(':', '%3A')}~${requeueCount}`;
}

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
    // BullMQ rejects a priority outside its bounds, and with it all jobs of a bulk. An altered priority is ignored.
    ...(priorityField.safeParse(payout.priority).success ? { priority: payout.priority as number } : {}),
    // Not `<= 0`: with NaN, BullMQ would add no job; the sender decides about such a time. BullMQ adds the delay to the
    // job's own time, so different times would reorder jobs for the same date.
    ...(delay > 0 ? { delay, timestamp: now } : {}),
    ...(payout.traceContext ? { telemetry: { metadata: payout.traceContext } } : {}),
  };
}
