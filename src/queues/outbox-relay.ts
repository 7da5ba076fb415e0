import { isAborted, within } from '../base/clock.js';
import { silentLogger, type Logger } from '../base/logger.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { STATES_WITH_JOB, type StateWithJob } from '../ledger/states.js';
import type { Payout } from '../ledger/payout.js';
import { readReadable } from '../ledger/payout-queries.js';
import { JobRecords } from './job-records.js';
import { toJobId, type JobSource, type PayoutQueues, type QueuesOptions } from './payout-queues.js';

/** Outbox entries per step. The script that looks for their jobs takes Redis 1.5 ms. */
const STEP = 250;
/** BullMQ adds a bulk in one transaction: 50 jobs take Redis some 3 ms. */
const JOBS_PER_BULK = 50;
const REPORTED_MEMBERS = 5;
const REPORTED_LENGTH = 100;
/** BullMQ may wait long for a hanging Redis; a caller must not. */
const CALLER_LIMIT_MS = 5_000;

/** Accepted payouts that are `queued` and may have no job. */
export interface AcceptedPayouts {
  /** Just entered the queue, so their job is certainly new. */
  readonly fresh: readonly JobSource[];
  /**
   * Were queued before, perhaps without a job. BullMQ ignores a job whose id exists, even a finished one, so the worker
   * must check them from the outbox.
   */
  readonly waiting: readonly JobSource[];
}

/**
 * Adds the jobs that the outbox lists. The script that changes a payout writes the entry, and only an added job removes
 * it.
 */
export class OutboxRelay {
  readonly #ledger: PayoutLedger;
  readonly #queues: PayoutQueues;
  readonly #records: JobRecords;
  readonly #firstPollAfterMs: number;
  readonly #logger: Logger;
  readonly #reported = new Set<string>();

  constructor(
    ledger: PayoutLedger,
    queues: PayoutQueues,
    { firstPollAfterMs = 0, logger = silentLogger }: Pick<QueuesOptions, 'firstPollAfterMs' | 'logger'> = {},
  ) {
    this.#ledger = ledger;
    this.#queues = queues;
    this.#records = new JobRecords(ledger.connection.redis);
    this.#firstPollAfterMs = firstPollAfterMs;
    this.#logger = logger;
  }

  /**
   * Adds jobs for changed payouts, as after a crash between change and job. Members that this version cannot read stay
   * in the outbox and are reported once.
   * @param changedBefore - wall clock, ms; later changes belong to the process that is adding their job
   * @param signal - ends it between two steps
   * @returns the number of processed entries
   */
  async relayOutbox(changedBefore: number, signal?: AbortSignal): Promise<number> {
    let delivered = 0;
    let left = 0;
    for (;;) {
      // Each step removes or skips its entries, so the loop ends whatever the outbox holds.
      const entries = await this.#ledger.readOutbox(STEP, changedBefore, left);
      const unknown = entries.flatMap((entry) => ('unknownMember' in entry ? [entry.unknownMember] : []));
      this.#reportUnknown(unknown);
      let passedOver = unknown.length;
      for (const state of STATES_WITH_JOB) {
        const payoutIds = entries.flatMap((entry) =>
          'state' in entry && entry.state === state ? [entry.payoutId] : [],
        );
        passedOver += (await this.deliver(state, payoutIds)).unreadable;
      }
      left += passedOver;
      delivered += entries.length - passedOver;
      if (entries.length < STEP || (signal !== undefined && isAborted(signal))) return delivered;
    }
  }

  /**
   * Adds missing jobs of payouts in the state, and removes all but unreadable payouts from the outbox. A job counts if
   * its hash exists. The reconciler checks whether it is in its queue. After an error the outbox keeps them.
   * @returns the number of added jobs, and of payouts that cannot be read
   */
  async deliver(
    state: StateWithJob,
    payoutIds: readonly string[],
  ): Promise<{ readonly added: number; readonly unreadable: number }> {
    const unreadable = new Set<string>();
    const payouts = await readReadable(this.#ledger.connection, payoutIds, (error, payoutId) => {
      unreadable.add(payoutId);
      this.#reportUnreadable(payoutId, error);
    });
    const waiting = payouts.filter((payout) => payout.state === state);
    if (state === 'queued') this.#reportUndated(waiting);
    const added = await this.#addMissing(state, waiting);
    const dealtWith = payoutIds.filter((payoutId) => !unreadable.has(payoutId));
    await this.#ledger.clearOutbox(state, dealtWith);
    return { added, unreadable: unreadable.size };
  }

  /**
   * As {@link deliver}, for callers whose change is already recorded: never throws, and takes 5 s at most. The worker
   * adds what fails from the outbox.
   */
  async tryDeliver(state: StateWithJob, payoutIds: readonly string[]): Promise<void> {
    await this.#try(payoutIds, async () => {
      for (let start = 0; start < payoutIds.length; start += STEP) {
        await this.deliver(state, payoutIds.slice(start, start + STEP));
      }
    });
  }

  /**
   * As {@link tryDeliver}, for a payout that the gateway has just accepted. Its poll job is new, so no check precedes
   * it. The reconciler finds exceptions, such as a Redis restored to an older state.
   */
  async tryDeliverSent(payoutId: string): Promise<void> {
    await this.#try([payoutId], async () => {
      const payout = await this.#ledger.get(payoutId);
      if (payout?.state === 'in_progress') await this.addJobs('in_progress', [payout]);
      await this.#ledger.clearOutbox('in_progress', [payoutId]);
    });
  }

  /**
   * Adds the jobs of new payouts without reading first. Never throws, and takes 5 s at most.
   * @returns false if it failed, and the payouts stay in the outbox
   */
  async tryAddAccepted(payouts: readonly JobSource[]): Promise<boolean> {
    return payouts.length === 0 || this.#try(toIds(payouts), async () => this.#queues.addWithdrawJobs(payouts));
  }

  /** Never throws, and takes 5 s at most. */
  async tryClearAccepted(payouts: readonly JobSource[]): Promise<void> {
    const payoutIds = toIds(payouts);
    if (payoutIds.length > 0) await this.#try(payoutIds, async () => this.#ledger.clearOutbox('queued', payoutIds));
  }

  async #try(payoutIds: readonly string[], work: () => Promise<unknown>): Promise<boolean> {
    const reason = await this.#failureOf(work);
    if (reason === undefined) return true;
    const fields = { payoutId: payoutIds[0], payouts: payoutIds.length, reason };
    this.#logger.warn(fields, 'job not added yet; the worker will add it');
    return false;
  }

  async #failureOf(work: () => Promise<unknown>): Promise<string | undefined> {
    try {
      const done = work().then(() => true);
      const isDone = await within(CALLER_LIMIT_MS, done, this.#ledger.connection.clock);
      return isDone ? undefined : `Redis did not respond within ${CALLER_LIMIT_MS} ms`;
    } catch (error) {
      return (error as Error).message;
    }
  }

  async #addMissing(state: StateWithJob, waiting: readonly Payout[]): Promise<number> {
    const queue = this.#queues.queueOf(state);
    const kinds = await this.#records.readKinds(queue, waiting.map(toJobId));
    const dead = waiting.filter((_, index) => kinds[index] === 'dead');
    const suspects = dead.map((payout) => ({ jobId: toJobId(payout), position: undefined }));
    const outcomes = await this.#records.clearOrphans(queue, suspects);
    const missing = [
      ...waiting.filter((_, index) => kinds[index] === 'none'),
      ...dead.filter((_, index) => outcomes[index] === 'cleared'),
    ];
    await this.addJobs(state, missing);
    return missing.length;
  }

  /** A job whose hash exists stays as it is. */
  async addJobs(state: StateWithJob, payouts: readonly Payout[]): Promise<void> {
    for (let start = 0; start < payouts.length; start += JOBS_PER_BULK) {
      const bulk = payouts.slice(start, start + JOBS_PER_BULK);
      if (state === 'queued') await this.#queues.addWithdrawJobs(bulk);
      else await this.#queues.addStatusJobs(bulk, this.#firstPollAfterMs);
    }
  }

  #reportUnknown(members: readonly string[]): void {
    const fresh = members.filter((member) => !this.#reported.has(member));
    if (fresh.length === 0) return;
    for (const member of fresh) this.#reported.add(member);
    this.#logger.error(
      {
        count: fresh.length,
        members: fresh.slice(0, REPORTED_MEMBERS).map((member) => member.slice(0, REPORTED_LENGTH)),
      },
      'the outbox holds members that this version does not understand; they stay there',
    );
  }

  /** Only a direct write to Redis causes this. A signed payout then counts as altered, and becomes held. */
  #reportUndated(payouts: readonly Payout[]): void {
    for (const { payoutId, notBefore } of payouts) {
      if (notBefore === undefined || !Number.isNaN(Date.parse(notBefore)) || this.#reported.has(payoutId)) continue;
      this.#reported.add(payoutId);
      this.#logger.error({ payoutId, notBefore }, 'notBefore is no time: the payout was altered, and does not wait');
    }
  }

  #reportUnreadable(payoutId: string, error: Error): void {
    if (this.#reported.has(payoutId)) return;
    this.#reported.add(payoutId);
    this.#logger.error({ payoutId, error: error.message }, 'a payout cannot be read; it gets no job');
  }
}

function toIds(payouts: readonly JobSource[]): string[] {
  return payouts.map(({ payoutId }) => payoutId);
}
