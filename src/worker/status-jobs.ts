import { DelayedError, type Job } from 'bullmq';
import { errorCode } from '../base/errors.js';
import type { StatusGateway } from '../gateway/gateway.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { QUEUE_NAMES, type PayoutJobData } from '../queues/payout-queues.js';
import type { ReceiptSigner } from './account-control.js';
import { ExpectedEndError, type JobWorker, type JobWorkerContext, startJobWorker } from './job-worker.js';
import { pollPayout } from './poll-payout.js';
import { describeOtherGateway } from './sender/journal-audit.js';

interface StatusJobsOptions extends JobWorkerContext {
  readonly ledger: PayoutLedger;
  readonly gateway: StatusGateway;
  /** Names the gateway: it knows nothing of another gateway's transactions. */
  readonly audience: string;
  readonly receipts?: ReceiptSigner | undefined;
  /** First delay between two polls of a payout, in ms. */
  readonly pollMinMs: number;
  /** The longest delay, in ms. */
  readonly pollMaxMs: number;
  /** Per second, over all processes. */
  readonly pollRate: number;
}

const CONCURRENCY = 20;
const GROWTH = 1.5;
const JITTER = 0.2;

/** The longest time between two polls of a payout, jitter included, in ms. */
export function longestPollDelayMs(pollMaxMs: number): number {
  return Math.ceil(pollMaxMs * (1 + JITTER / 2));
}

/**
 * Follows `in_progress` payouts until the gateway reports them as paid or failed. A job lives as long as its payout is
 * in progress and is delayed between polls. A failed poll changes only the time of the next.
 */
export class StatusJobs {
  readonly #options: StatusJobsOptions;
  readonly #worker: JobWorker;

  constructor(options: StatusJobsOptions) {
    this.#options = options;
    this.#worker = startJobWorker({
      ...options,
      queue: QUEUE_NAMES.transactionstatus,
      run: async (job, token) => this.#process(job, token),
      concurrency: CONCURRENCY,
      ratePerSecond: options.pollRate,
    });
  }

  /** Resolves after the running polls. Safe to call twice. */
  async close(): Promise<void> {
    await this.#worker.close();
  }

  async #process(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    const { ledger, audience, observer, logger, clock } = this.#options;
    const { payoutId } = job.data;
    try {
      const bound = (await ledger.readAudience()) ?? audience;
      if (bound !== audience) throw new Error(describeOtherGateway(bound, audience));
      const report = await pollPayout(payoutId, this.#options);
      const { state } = report;
      if (report.kind === 'skipped') return `nothing to do: the payout is ${state ?? 'not in the ledger'}`;
      observer.polled(report.state);
      if (state === 'completed') return 'completed';
      if (state === 'failed') throw new ExpectedEndError('failed: the gateway reported that the payment failed');
      if (report.state === 'unknown') throw new ExpectedEndError(`unknown: ${report.reason}`);
    } catch (error) {
      if (error instanceof ExpectedEndError) throw error;
      const { message } = error as Error;
      observer.polled('error', message, errorCode(error));
      logger.warn({ payoutId, error: message }, 'status poll failed, will retry');
    }
    await job.moveToDelayed(clock.wallNow() + this.#nextDelayMs(job.attemptsStarted), token);
    throw new DelayedError();
  }

  #nextDelayMs(polls: number): number {
    const { pollMinMs, pollMaxMs } = this.#options;
    const delayMs = Math.min(pollMinMs * GROWTH ** Math.max(0, polls - 1), pollMaxMs);
    return Math.round(delayMs * (1 - JITTER / 2 + JITTER * Math.random()));
  }
}
