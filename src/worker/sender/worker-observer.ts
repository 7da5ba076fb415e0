import { callWatcher, failsafeMethods } from '../../failsafe.js';
import type { WithdrawOutcome } from '../../gateway/withdraw-gateway.js';
import type { PayoutState } from '../../ledger/states.js';

/** What the worker tells what measures it. Times are in ms. Every method must return at once; what one throws is only counted. */
export interface WorkerObserver {
  /** A withdraw came to an end. */
  sent(outcome: WithdrawOutcome['kind'], durationMs: number): void;
  /** A try to send a payout ended before anything was written: it keeps its place in the queue, and is tried again. */
  notSent(reason: string, retryInMs: number): void;
  /** Between two writes of one account, as this process made them. */
  sendGap(gapMs: number): void;
  /** How long a payout waited for its slot. */
  pacerWaited(waitedMs: number): void;
  journalSynced(durationMs: number): void;
  /** @param error - why the poll came to nothing; with the result `error` only */
  polled(result: 'in_progress' | 'completed' | 'failed' | 'unknown' | 'error', error?: string): void;
  /**
   * A payout was held, or an account stayed paused, since a signature does not allow more.
   * @param reason - one word
   * @param isTampering - somebody altered or forged something
   */
  signatureRefused(reason: string, isTampering: boolean): void;
  /** Payouts of this state had lost their BullMQ job and got another. */
  jobsRecreated(state: Extract<PayoutState, 'queued' | 'in_progress'>, count: number): void;
  /** The BullMQ worker of this queue hung, and another one took its place. */
  jobWorkerReplaced(queue: 'withdraw' | 'transactionstatus'): void;
}

/** Measures nothing. */
export const noObserver: WorkerObserver = {
  sent: () => undefined,
  notSent: () => undefined,
  sendGap: () => undefined,
  pacerWaited: () => undefined,
  journalSynced: () => undefined,
  polled: () => undefined,
  signatureRefused: () => undefined,
  jobsRecreated: () => undefined,
  jobWorkerReplaced: () => undefined,
};

/**
 * The observer of an account, made failsafe: its methods never throw.
 * @param observe - makes it; where this throws, nothing is measured
 */
export function openObserver(
  platformId: number,
  observe: ((platformId: number) => WorkerObserver) | undefined,
): WorkerObserver {
  if (observe === undefined) return noObserver;
  return failsafeObserver(callWatcher('observer', () => observe(platformId), noObserver));
}

/** The same observer, but it never throws. */
export function failsafeObserver(observer: WorkerObserver): WorkerObserver {
  return failsafeMethods('observer', observer, [
    'sent',
    'notSent',
    'sendGap',
    'pacerWaited',
    'journalSynced',
    'polled',
    'signatureRefused',
    'jobsRecreated',
    'jobWorkerReplaced',
  ]);
}
