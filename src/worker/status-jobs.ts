import { DelayedError, type Job } from 'bullmq';
import { queryFailureCode } from '../gateway/gateway.js';
import { QUEUE_NAMES, type PayoutJobData } from '../queues/payout-queues.js';
import type { AccountRuntime } from './account-runtime.js';
import { ExpectedEndError, type JobRuntime, JobWorker } from './job-worker.js';
import { SHARE_OF_POLLS } from './janitor.js';
import { pollPayout } from './poll-payout.js';
import { inJobSpan } from './trace-work.js';
import { observeReached } from './sender/worker-observer.js';
import { describeOtherGateway } from './sender/journal-audit.js';

type Needed = JobRuntime & Pick<AccountRuntime, 'polledLedger' | 'gateway' | 'audience' | 'settings' | 'control'>;

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
  readonly #runtime: Needed;
  readonly #worker: JobWorker;

  constructor(runtime: Needed) {
    this.#runtime = runtime;
    const share = runtime.gateway.findPayment === undefined ? 1 : 1 - SHARE_OF_POLLS;
    const limits = { concurrency: CONCURRENCY, ratePerSecond: runtime.settings.pollRate, share };
    this.#worker = new JobWorker(runtime, QUEUE_NAMES.transactionstatus, this.#run.bind(this), limits);
  }

  /** Resolves after the running polls. Safe to call twice. */
  async close(): Promise<void> {
    await this.#worker.close();
  }

  async #run(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    return inJobSpan('poll payout', job, this.#runtime.ledger.connection.platformId, async () =>
      this.#poll(job, token),
    );
  }

  async #poll(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    const { polledLedger, gateway, control, audience, observer, logger, clock } = this.#runtime;
    const { payoutId } = job.data;
    try {
      // A gateway knows nothing of another gateway's transactions.
      const bound = (await polledLedger.readAudience()) ?? audience;
      if (bound !== audience) throw new Error(describeOtherGateway(bound, audience));
      const report = await pollPayout(payoutId, polledLedger, gateway, logger, control?.receipts, (payout) => {
        observeReached(observer, 'completed', payout, clock.wallNow());
      });
      const { state } = report;
      if (report.kind === 'skipped') return `nothing to do: the payout is ${state ?? 'not in the ledger'}`;
      observer.polled(report.state);
      if (report.receiptFailure !== undefined) observer.receiptFailed(report.receiptFailure);
      if (state === 'completed') return 'completed';
      if (state === 'failed') throw new ExpectedEndError('failed: the gateway reported that the payment failed');
      if (report.state === 'unknown') throw new ExpectedEndError(`unknown: ${report.reason}`);
    } catch (error) {
      if (error instanceof ExpectedEndError) throw error;
      const { message } = error as Error;
      observer.polled('error', message, queryFailureCode(error));
      logger.warn({ payoutId, error: message }, 'status poll failed, will retry');
    }
    await job.moveToDelayed(clock.wallNow() + this.#nextDelayMs(job.attemptsStarted), token);
    throw new DelayedError();
  }

  #nextDelayMs(polls: number): number {
    const { pollMinMs, pollMaxMs } = this.#runtime.settings;
    const delayMs = Math.min(pollMinMs * GROWTH ** Math.max(0, polls - 1), pollMaxMs);
    return Math.round(delayMs * (1 - JITTER / 2 + JITTER * Math.random()));
  }
}
