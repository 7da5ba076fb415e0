import { DelayedError, WaitingError, type Job } from 'bullmq';
import { QUEUE_NAMES, type PayoutJobData } from '../queues/payout-queues.js';
import { removeNextCancelledJobs } from '../queues/remove-cancelled-jobs.js';
import type { AccountRuntime } from './account-runtime.js';
import { ExpectedEndError, JobWorker } from './job-worker.js';
import { inJobSpan } from './trace-work.js';
import { sendUntilDecided, type ActiveSender, type SendDecision } from './sender/send-until-decided.js';

/**
 * Runs the `withdraw` queue's jobs one at a time, at most one a second, while the lease is held. The limiter only
 * shapes the queue. The sender guarantees the distance between sends.
 */
export class WithdrawJobs {
  readonly #active: ActiveSender<AccountRuntime>;
  readonly #worker: JobWorker;
  readonly #stop = new AbortController();
  /** The send in progress; close waits for its response. */
  #sending: Promise<unknown> | undefined;

  constructor(active: ActiveSender<AccountRuntime>) {
    this.#active = active;
    const limits = { concurrency: 1, ratePerSecond: 1 };
    this.#worker = new JobWorker(active.runtime, QUEUE_NAMES.withdraw, this.#run.bind(this), limits);
  }

  /** Starts no new send, waits for the response of the one in progress, and ends. Safe to call twice. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await this.#worker.close();
  }

  /** After a written send, its job never runs again: BullMQ retries nothing, and the ledger would refuse. */
  async #run(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    return inJobSpan('send payout', job, this.#active.runtime.platformId, async () => this.#send(job, token));
  }

  async #send(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    const { payoutId } = job.data;
    const sending = sendUntilDecided(payoutId, this.#active, this.#stop.signal);
    this.#sending = sending;
    const decision = await sending;
    switch (decision.kind) {
      case 'sent':
        return await this.#conclude(payoutId, decision.outcome);
      case 'skipped':
        await this.#giveBackSlot();
        if (decision.state === 'cancelled') await this.#removeNext();
        return `nothing to do: the payout is ${decision.state ?? 'not in the ledger'}`;
      case 'early':
        await job.moveToDelayed(decision.notBefore, token);
        throw new DelayedError();
      case 'put_back':
        // To the head of the queue, which keeps the order.
        await job.moveToWait(token);
        throw new WaitingError();
    }
  }

  /**
   * Nothing was sent, so the next payout need not wait a second. The sender's own pace does not depend on the limiter.
   */
  async #giveBackSlot(): Promise<void> {
    const { queues, logger } = this.#active.runtime;
    try {
      await queues.withdraw.removeRateLimitKey();
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'the next job waits for the limiter');
    }
  }

  /** Payouts cancelled together are adjacent in the queue. Removing them at once is much faster than job by job. */
  async #removeNext(): Promise<void> {
    const { ledger, queues, logger } = this.#active.runtime;
    try {
      const removed = await removeNextCancelledJobs(ledger.connection, queues.withdraw, this.#stop.signal);
      if (removed > 0) logger.info({ removed }, 'removed the jobs of cancelled payouts that came next');
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'the jobs of cancelled payouts stay');
    }
  }

  /** Ends the job; those that need an operator are among the failed ones. */
  async #conclude(payoutId: string, outcome: Extract<SendDecision, { kind: 'sent' }>['outcome']): Promise<string> {
    switch (outcome.kind) {
      case 'accepted':
        await this.#active.runtime.relay.tryDeliverSent(payoutId);
        return `accepted: ${outcome.gatewayId}`;
      case 'rejected':
        throw new ExpectedEndError(`rejected: ${outcome.message}`);
      case 'unknown':
        throw new ExpectedEndError(`unknown: ${outcome.reason}`);
    }
  }
}
