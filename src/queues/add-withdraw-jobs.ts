import { within, type Clock } from '../clock.js';
import type { JobSource } from './payout-queues.js';
import type { AccountAccess } from './open-account.js';

/** BullMQ may wait long for a Redis that hangs; the caller should not. */
const ADD_LIMIT_MS = 5_000;

/** Payouts that are `queued` and may have no job. */
export interface JoblessPayouts {
  /** Came into the queue just now: their job is new for certain. */
  readonly fresh: readonly JobSource[];
  /**
   * Were in the queue before, perhaps without a job. BullMQ ignores an added job whose id is there, also a finished
   * one, so the outbox still has to make the worker look at them.
   */
  readonly waiting: readonly JobSource[];
}

/**
 * Gives payouts their withdraw job, and notes in the outbox which ones have it. Never throws: the ledger has the
 * payouts already, and the outbox makes the worker add the jobs that are missing.
 */
export async function addWithdrawJobs(
  { ledger, queues, clock, logger }: AccountAccess,
  { fresh, waiting }: JoblessPayouts,
): Promise<void> {
  const add = async (): Promise<void> => {
    await queues.addWithdrawJobs([...fresh, ...waiting]);
    await ledger.clearOutbox(
      'queued',
      fresh.map(({ payoutId }) => payoutId),
    );
  };
  const reason = await failureWithin(clock, add(), ADD_LIMIT_MS);
  if (reason === undefined) return;
  const payoutIds = [...fresh, ...waiting].map(({ payoutId }) => payoutId);
  const fields = { payoutId: payoutIds[0], payouts: payoutIds.length, reason };
  logger.warn(fields, 'payouts are accepted but may have no job yet: the worker will add it');
}

/** Why `work` did not succeed within the limit; undefined when it did. */
async function failureWithin(clock: Clock, work: Promise<void>, limitMs: number): Promise<string | undefined> {
  try {
    const isDone = await within(
      limitMs,
      work.then(() => true),
      clock,
    );
    return isDone ? undefined : `Redis did not answer within ${limitMs} ms`;
  } catch (error) {
    return (error as Error).message;
  }
}
