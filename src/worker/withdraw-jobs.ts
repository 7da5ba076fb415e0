import { DelayedError, WaitingError, type Job } from 'bullmq';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import { QUEUE_NAMES, type PayoutJobData } from '../queues/payout-queues.js';
import { removeNextCancelledJobs } from '../queues/remove-cancelled-jobs.js';
import { ExpectedEndError } from './job-worker.js';
import { startJobWorker, type JobWorker, type JobWorkerContext } from './job-worker.js';
import { sendUntilDecided, type ActiveSender, type SendDecision } from './sender/send-until-decided.js';

interface WithdrawJobsOptions extends JobWorkerContext {
  readonly active: ActiveSender;
  readonly relay: Pick<OutboxRelay, 'tryDeliverSent'>;
}

/**
 * Runs the jobs of the `withdraw` queue: one at a time, at most one a second, for as long as the lease is held.
 * The limiter shapes the queue; that no two sends come too close is the sender's own promise.
 */
export class WithdrawJobs {
  readonly #options: WithdrawJobsOptions;
  readonly #worker: JobWorker;
  readonly #stop = new AbortController();
  /** The send in progress, whose response is worth waiting for. */
  #sending: Promise<unknown> | undefined;

  constructor(options: WithdrawJobsOptions) {
    this.#options = options;
    this.#worker = startJobWorker({
      ...options,
      queue: QUEUE_NAMES.withdraw,
      run: async (job, token) => this.#run(job, token),
      concurrency: 1,
      ratePerSecond: 1,
    });
  }

  /** Begins no new send, lets the one in progress get its response, and ends. Safe to call twice. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await this.#worker.close();
  }

  /** Once a send was written, its job never runs again: BullMQ retries nothing, and the ledger would refuse it. */
  async #run(job: Job<PayoutJobData, string>, token: string | undefined): Promise<string> {
    const { payoutId } = job.data;
    const sending = sendUntilDecided(payoutId, this.#options.active, this.#stop.signal);
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
        // To the head of the queue, so that the order is kept.
        await job.moveToWait(token);
        throw new WaitingError();
    }
  }

  /** Nothing was sent: the next payout need not wait for a second. The sender's own pace does not depend on the limiter. */
  async #giveBackSlot(): Promise<void> {
    const { queues, logger } = this.#options;
    try {
      await queues.withdraw.removeRateLimitKey();
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'the next job waits for the limiter');
    }
  }

  /** Payouts that are cancelled together stand together: at once this is much faster than one job after the other. */
  async #removeNext(): Promise<void> {
    const { connection, queues, clock, logger } = this.#options;
    try {
      const sweep = { clock, signal: this.#stop.signal };
      const removed = await removeNextCancelledJobs(connection, queues.withdraw, sweep);
      if (removed > 0) logger.info({ removed }, 'removed the jobs of cancelled payouts that came next');
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'the jobs of cancelled payouts stay');
    }
  }

  /** The job's end on the dashboard: what needs an operator is among the failed ones. */
  async #conclude(payoutId: string, outcome: Extract<SendDecision, { kind: 'sent' }>['outcome']): Promise<string> {
    switch (outcome.kind) {
      case 'accepted':
        await this.#options.relay.tryDeliverSent(payoutId);
        return `accepted: ${outcome.txhash}`;
      case 'rejected':
        throw new ExpectedEndError(`rejected: ${outcome.message}`);
      case 'unknown':
        throw new ExpectedEndError(`unknown: ${outcome.reason}`);
    }
  }
}
