import {
  ErrorCode,
  Job,
  type JobsOptions,
  Queue,
  type QueueOptions,
  SpanKind,
  type Telemetry,
  TelemetryAttributes,
} from 'bullmq';
import { type Logger, silentLogger } from '../base/logger.js';
import { activeTrace } from '../base/tracing.js';
import { ask, type LedgerConnection, pipelined } from '../ledger/ledger-connection.js';
import { type Payout, priorityField } from '../ledger/payout.js';
import { queueNameOf, type StateWithJob } from '../ledger/states.js';

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
  readonly gatewayId?: string;
}

export type JobSource = Pick<
  Payout,
  'payoutId' | 'paymentId' | 'amount' | 'addressTo' | 'symbol' | 'priority' | 'notBefore' | 'gatewayId'
> &
  JobIdSource & {
    /** The caller's trace, if the job is added after the call. */
    readonly traceContext?: string;
  };

interface JobIdSource {
  readonly payoutId: string;
  /** How many times an operator requeued the payout. @defaultValue 0 */
  readonly requeueCount?: number;
}

/** How a process uses an account's queues. */
export interface QueuesOptions {
  readonly telemetry?: Telemetry | undefined;
  /** @defaultValue no logging */
  readonly logger?: Logger;
  /** For readers: writes no settings of the queues into Redis. @defaultValue false */
  readonly readOnly?: boolean;
  /** Before the first status poll of a payout, in ms. @defaultValue 0 */
  readonly firstPollAfterMs?: number;
}

export class PayoutQueues {
  readonly withdraw: Queue<PayoutJobData>;
  readonly transactionstatus: Queue<PayoutJobData>;
  readonly #connection: LedgerConnection;
  readonly #telemetry: Telemetry | undefined;

  constructor(
    connection: LedgerConnection,
    { telemetry, logger = silentLogger, readOnly = false }: Omit<QueuesOptions, 'firstPollAfterMs'> = {},
  ) {
    const options: QueueOptions = {
      connection: connection.redis,
      // Keeps the queue's keys in the account's namespace and cluster slot.
      prefix: connection.keys.prefix,
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
    this.#connection = connection;
    this.#telemetry = telemetry;
  }

  queueOf(state: StateWithJob): Queue<PayoutJobData> {
    return this[queueNameOf(state)];
  }

  /** @returns undefined without tracing */
  beginTrace(jobs: number): JobTrace | undefined {
    if (this.#telemetry !== undefined) return beginJobTrace(this.#telemetry, QUEUE_NAMES.withdraw, jobs);
    const context = activeTrace();
    return context === undefined ? undefined : { context, end: () => undefined };
  }

  /** An existing job stays as it is. */
  async addWithdrawJobs(payouts: readonly JobSource[]): Promise<void> {
    if (payouts.length === 0) return;
    const now = this.#connection.clock.wallNow();
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
      opts: { jobId: toJobId(payout), delay: delayMs, ...traceOptions(activeTrace()) },
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

  /**
   * Makes the next status poll of a payout due now: it joins the end of those that are due, and the limit of polls stays.
   * @returns false if no poll of it waits for a time: it runs, is due already, or has no job
   */
  async bringPollForward(payout: JobIdSource): Promise<boolean> {
    const { transactionstatus } = this;
    // As if it had been read: nothing of it is needed but its id.
    const job = new Job<unknown>(transactionstatus, QUEUE_NAMES.transactionstatus, {}, {}, toJobId(payout));
    try {
      await ask(job.promote());
      return true;
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === ErrorCode.JobNotInState) return false;
      throw error;
    }
  }

  async #isWithinReach(jobId: string): Promise<boolean> {
    const key = (name: string): string => this.withdraw.toKey(name);
    const [length, position, ...scores] = (await pipelined(this.#connection, (pipeline) => {
      pipeline.llen(key('wait')).lpos(key('wait'), jobId, 'MAXLEN', LIST_REACH);
      for (const name of ['failed', 'completed', 'delayed', 'prioritized']) pipeline.zscore(key(name), jobId);
    })) as [number, ...(number | string | null)[]];
    return length <= LIST_REACH || [position, ...scores].some((found) => found !== null);
  }

  /**
   * Shortens times that became longer because the clock of Redis or a worker was put back. BullMQ keeps dates, not
   * intervals: a jump of an hour would stop the queue for an hour.
   * @returns the number of shortened times; 0 if no clock has jumped
   */
  async repairTimes(queue: Queue, times: QueueTimes): Promise<number> {
    return shortenTimes(this.#connection, queue, times);
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

function toJobData({ payoutId, paymentId, amount, addressTo, symbol, gatewayId }: JobSource): PayoutJobData {
  return {
    payoutId,
    paymentId,
    amount,
    addressTo,
    ...(symbol === undefined ? {} : { symbol }),
    ...(gatewayId === undefined ? {} : { gatewayId }),
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
    ...traceOptions(payout.traceContext),
  };
}

function traceOptions(metadata: string | undefined): Pick<JobsOptions, 'telemetry'> {
  return metadata ? { telemetry: { metadata } } : {};
}

/** The lifetimes of BullMQ's keys in a queue, in ms. */
interface QueueTimes {
  readonly limiterMs: number;
  readonly stalledCheckMs: number;
  readonly lockMs: number;
  /** The longest delay of a job. Without it, the delays are dates that a person chose. */
  readonly longestDelayMs?: number;
}

interface ExpiringKey {
  readonly key: string;
  readonly maxMs: number;
}

/** BullMQ's scores: the date in the high bits, and twelve more bits for jobs of the same millisecond. */
const SCORES_PER_MS = 0x1000;
const JOBS_PER_LOOK = 1_000;

/** The lowest score of a delayed job for a date, in ms. */
export function delayedScore(at: number): number {
  return at * SCORES_PER_MS;
}

/**
 * Shortens times that are further ahead than they were ever set, see `PayoutQueues.repairTimes`. One round trip if no
 * job is active and no clock was put back.
 */
async function shortenTimes(connection: LedgerConnection, queue: Queue, times: QueueTimes): Promise<number> {
  const { limiterMs, stalledCheckMs, lockMs, longestDelayMs } = times;
  const now = connection.clock.wallNow();
  const timers = [
    { key: queue.toKey('limiter'), maxMs: limiterMs },
    { key: queue.toKey('stalled-check'), maxMs: stalledCheckMs },
  ];
  const replies = await pipelined(connection, (pipeline) => {
    for (const { key } of timers) pipeline.pttl(key);
    pipeline.lrange(queue.toKey('active'), 0, -1);
    if (longestDelayMs === undefined) return;
    const latest = delayedScore(now + longestDelayMs + 1);
    pipeline.zrange(queue.toKey('delayed'), latest, '+inf', 'BYSCORE', 'LIMIT', 0, JOBS_PER_LOOK);
  });
  const [limiterLeftMs, checkLeftMs, active, lateJobs = []] = replies as [number, number, string[], string[]?];
  const locks = active.map((jobId) => ({ key: queue.toKey(`${jobId}:lock`), maxMs: lockMs }));
  const long = [
    ...timers.filter(({ maxMs }, index) => (index === 0 ? limiterLeftMs : checkLeftMs) > maxMs),
    ...(await findLong(connection, locks)),
  ];
  if (long.length + lateJobs.length > 0) {
    await pipelined(connection, (pipeline) => {
      for (const { key, maxMs } of long) pipeline.pexpire(key, maxMs);
      // A job that is no longer delayed must not be added there again.
      for (const jobId of lateJobs) pipeline.zadd(queue.toKey('delayed'), 'XX', delayedScore(now), jobId);
    });
  }
  return long.length + lateJobs.length;
}

async function findLong(connection: LedgerConnection, keys: readonly ExpiringKey[]): Promise<ExpiringKey[]> {
  if (keys.length === 0) return [];
  const leftMs = (await pipelined(connection, (pipeline) => {
    for (const { key } of keys) pipeline.pttl(key);
  })) as number[];
  return keys.filter(({ maxMs }, index) => (leftMs[index] ?? 0) > maxMs);
}

export interface JobTrace {
  /** Carried by the jobs, so that their worker continues the caller's trace. */
  readonly context: string;
  end(): void;
}

/**
 * Begins a span in the active trace, like BullMQ's `add`. A batch has jobs of several callers, and BullMQ would put all
 * into one trace.
 */
function beginJobTrace({ tracer, contextManager }: Telemetry, queue: string, jobs: number): JobTrace {
  const span = tracer.startSpan(`add ${queue}`, { kind: SpanKind.PRODUCER });
  span.setAttributes({
    [TelemetryAttributes.QueueName]: queue,
    [TelemetryAttributes.QueueOperation]: 'add',
    [TelemetryAttributes.BulkCount]: jobs,
  });
  const context: unknown = span.setSpanOnContext(contextManager.active());
  return {
    context: contextManager.getMetadata(context),
    end: () => {
      span.end();
    },
  };
}

/** The limiters of both queues count within a second. A key with a longer TTL was set by hand. */
const LIMITER_LIVES_MS = 2_000;

/**
 * A setting in Redis that no worker made and that stops a queue or overrides its limits, with the redis-cli command
 * that removes it.
 */
export interface ForeignSetting {
  readonly detail: string;
  readonly command: string;
}

export async function findForeignSettings(connection: LedgerConnection, queue: Queue): Promise<ForeignSetting[]> {
  const [metaKey, limiterKey] = [queue.toKey('meta'), queue.toKey('limiter')];
  const [meta, limiterLivesMs] = (await pipelined(connection, (pipeline) => {
    pipeline.hgetall(metaKey).pttl(limiterKey);
  })) as [Record<string, string>, number];
  return [...checkMeta(metaKey, meta), ...checkLimiter(limiterKey, limiterLivesMs)];
}

function checkMeta(key: string, meta: Readonly<Record<string, string>>): ForeignSetting[] {
  const { paused, concurrency, max, duration } = meta;
  const found: ForeignSetting[] = [];
  const remove = (...fields: string[]): string => `HDEL '${key}' ${fields.join(' ')}`;
  if (paused !== undefined) {
    found.push({ detail: 'paused in BullMQ, so no job runs', command: remove('paused') });
  }
  if (concurrency !== undefined) {
    found.push({ detail: `global concurrency of ${concurrency}`, command: remove('concurrency') });
  }
  if (max !== undefined || duration !== undefined) {
    found.push({
      detail: `global rate limit (${max ?? '?'} in ${duration ?? '?'} ms), which overrides that of the worker`,
      command: remove('max', 'duration'),
    });
  }
  return found;
}

function checkLimiter(key: string, livesMs: number): ForeignSetting[] {
  const command = `DEL '${key}'`;
  if (livesMs === -1) return [{ detail: 'the limiter key never expires, so the limiter does not work', command }];
  if (livesMs <= LIMITER_LIVES_MS) return [];
  return [{ detail: `rate limited by hand for another ${Math.ceil(livesMs / 1_000)} s`, command }];
}
