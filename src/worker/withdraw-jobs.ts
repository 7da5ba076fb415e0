import { DelayedError, UnrecoverableError, WaitingError, Worker, type Job, type Telemetry } from 'bullmq';
import { isAborted, type Clock } from '../clock.js';
import type { SenderLedger } from '../ledger/sender-ledger.js';
import type { Logger } from '../logger.js';
import { QUEUE_NAMES, type PayoutJobData } from '../queues/payout-queues.js';
import type { RedisClient } from '../redis.js';
import { closeWorker } from './job-worker.js';
import type { LedgerMismatch } from '../journal/find-mismatch.js';
import type { SendReport } from './sender/send-report.js';
import type { Sender } from './sender/sender.js';

export interface WithdrawJobsOptions {
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly sender: Pick<Sender, 'send'>;
  /** Adds the poll job of a payout that the gateway accepted. */
  readonly onAccepted: (payoutId: string) => Promise<void>;
  /** Told when journal and ledger contradict each other. */
  readonly onRefused: (mismatch: LedgerMismatch) => void;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

/** What BullMQ keeps of finished jobs: enough for the dashboard; the ledger keeps the payouts themselves. */
export const KEPT_JOBS = { removeOnComplete: { count: 100 }, removeOnFail: { count: 1_000 } };

/**
 * How soon a job whose worker was killed is run again, and how often that may happen before BullMQ fails it. The
 * ledger makes a re-run harmless, so it may come early and as often as it likes.
 */
export const STALLED_JOBS = { lockDuration: 6_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 };

/** Over so long the limiter of a queue counts, and no worker waits longer for it, wherever a wall clock jumps meanwhile. */
export const LIMITER_MS = 1_000;

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 30_000;
const PAUSED_LOOK_MS = 1_000;

/**
 * Runs the jobs of the `withdraw` queue: one at a time, at most one a second, for as long as the lease is held.
 * The limiter shapes the queue; that no two sends come too close is the sender's own promise.
 */
export class WithdrawJobs {
  readonly #options: WithdrawJobsOptions;
  readonly #worker: Worker<PayoutJobData, string>;
  readonly #stop = new AbortController();
  /** The send under way, whose answer is worth waiting for. */
  #sending: Promise<SendReport> | undefined;

  constructor(options: WithdrawJobsOptions) {
    this.#options = options;
    const { redis, prefix, logger, telemetry } = options;
    this.#worker = new Worker<PayoutJobData, string>(
      QUEUE_NAMES.withdraw,
      async (job, token) => this.#process(job, token),
      {
        connection: redis,
        prefix,
        concurrency: 1,
        limiter: { max: 1, duration: LIMITER_MS },
        maximumRateLimitDelay: LIMITER_MS,
        ...STALLED_JOBS,
        ...KEPT_JOBS,
        ...(telemetry === undefined ? {} : { telemetry }),
      },
    );
    this.#worker.on('error', (error) => {
      logger.debug({ error: error.message }, 'withdraw queue trouble');
    });
  }

  /** Begins no new send, lets the one under way get its answer, and ends. Safe to call twice. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await closeWorker(this.#worker);
  }

  async #process(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    const { payoutId } = job.data;
    for (let delayMs = RETRY_MIN_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      const report = await this.#send(payoutId);
      switch (report.kind) {
        case 'sent':
          return await this.#conclude(payoutId, report.outcome);
        case 'skipped':
          return `nothing to do: the payout is ${report.state ?? 'not in the ledger'}`;
        case 'early':
          await job.moveToDelayed(report.notBefore, token);
          throw new DelayedError();
        case 'not_sent':
          this.#options.logger.warn(
            { payoutId, reason: report.reason, retryInMs: delayMs },
            'not sent, will try again',
          );
          await this.#options.clock.sleep(delayMs, this.#stop.signal);
          break;
        case 'paused':
        case 'objected':
          await this.#waitUntilResumed(payoutId, report);
          break;
        case 'ledger_refused':
          this.#options.onRefused(report.mismatch);
          return await putBack(job, token);
        case 'lease_lost':
        case 'stopped':
          return await putBack(job, token);
      }
      if (isAborted(this.#stop.signal)) return await putBack(job, token);
    }
  }

  async #send(payoutId: string): Promise<SendReport> {
    this.#sending = this.#trySend(payoutId);
    return this.#sending;
  }

  async #trySend(payoutId: string): Promise<SendReport> {
    try {
      return await this.#options.sender.send(payoutId, this.#stop.signal);
    } catch (error) {
      return { kind: 'not_sent', reason: (error as Error).message };
    }
  }

  /** The job's end on the dashboard: what needs a person stands among the failed ones. */
  async #conclude(payoutId: string, outcome: Extract<SendReport, { kind: 'sent' }>['outcome']): Promise<string> {
    switch (outcome.kind) {
      case 'accepted':
        await this.#options.onAccepted(payoutId);
        return `accepted: ${outcome.txhash}`;
      case 'rejected':
        throw new UnrecoverableError(`rejected: ${outcome.message}`);
      case 'unknown':
        throw new UnrecoverableError(`unknown: ${outcome.reason}`);
    }
  }

  async #waitUntilResumed(
    payoutId: string,
    { kind, reason }: Extract<SendReport, { kind: 'paused' | 'objected' }>,
  ): Promise<void> {
    const { clock, ledger, logger } = this.#options;
    logger.warn({ payoutId, reason }, WAITS[kind]);
    while (!isAborted(this.#stop.signal)) {
      await clock.sleep(PAUSED_LOOK_MS, this.#stop.signal);
      try {
        const { pausedReason, objections } = await ledger.readSender();
        if (pausedReason === undefined && objections.length === 0) return;
      } catch {
        // Redis unavailable: whether the account may send is asked again, and begin-send asks it in any case.
      }
    }
  }
}

const WAITS = {
  paused: 'the account is paused, its payouts wait; `payouts resume` lets it send again',
  objected: 'a send journal contradicts the ledger, payouts wait; `payouts stats` shows the command that ends this',
};

/** To the head of the queue, so that the order is kept. */
async function putBack(job: Job, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}
