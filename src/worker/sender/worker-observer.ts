import type { ErrorCode } from '../../base/errors.js';
import { callWatcher, failsafeMethods } from '../../base/logger.js';
import type { WithdrawOutcome } from '../../gateway/gateway.js';
import type { LookUpAnswer } from '../../ledger/order-look-up.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';

/** A request to the gateway. */
export interface GatewayCall {
  readonly endpoint: 'withdraw' | 'transactionstatus' | 'currencies' | 'balance';
  /** Undefined while it is open. `unavailable`: no trustworthy response came. `not_sent`: nothing was written. */
  end?: {
    readonly outcome: 'answered' | 'rejected' | 'unavailable' | 'invalid' | 'not_sent';
    readonly durationMs: number;
    /** Of the response; undefined if none came, or an own gateway does not use HTTP. */
    readonly httpStatus?: number | undefined;
  };
}

/**
 * Receives the worker's measurements; times are in ms. Every method must return at once; what it throws is only
 * counted.
 */
export interface WorkerObserver {
  sent(outcome: WithdrawOutcome['kind'], durationMs: number): void;
  /** A try to send a payout ended before anything was written: it keeps its place in the queue, and is tried again. */
  notSent(reason: string, retryInMs: number, code?: ErrorCode): void;
  /**
   * Between two writes of one account, as this process made them.
   * @param hadToWait - the second payout was there before its slot, so no idle time is in it
   */
  sendGap(gapMs: number, hadToWait: boolean): void;
  /** How long a payout waited for its slot. */
  pacerWaited(waitedMs: number): void;
  journalSynced(durationMs: number): void;
  /** @param error - why the poll came to nothing, and its code; with the result `error` only */
  polled(result: 'in_progress' | 'completed' | 'failed' | 'unknown' | 'error', error?: string, code?: ErrorCode): void;
  /**
   * A payout was held, or an account stayed paused, because of a signature.
   * @param reason - one word
   * @param isTampering - someone altered or forged something
   */
  signatureRefused(reason: string, isTampering: boolean): void;
  /** A payment ended without a receipt, because the signer gave no signature. */
  receiptFailed(error: string): void;
  /** Payouts of this state had lost their BullMQ job and got another, or theirs could not run. */
  jobsRecreated(state: Extract<PayoutState, 'queued' | 'in_progress'>, count: number): void;
  /** The BullMQ worker of this queue hung, and another one replaced it. */
  jobWorkerReplaced(queue: 'withdraw' | 'transactionstatus'): void;
  /**
   * A payout was sent and accepted, or paid.
   * @param afterMs - since it could have been sent: it was enqueued, or its `notBefore` came. By wall clocks
   */
  reached?(state: 'sent' | 'completed', afterMs: number): void;
  /** The worker asked the gateway for a payout by its order ids. */
  lookedUp?(answer: LookUpAnswer): void;
  /** A request to the gateway begins, and, with the same object, has ended. */
  gatewayCalled?(call: GatewayCall): void;
}

export const noObserver: WorkerObserver = {
  sent: () => undefined,
  notSent: () => undefined,
  sendGap: () => undefined,
  pacerWaited: () => undefined,
  journalSynced: () => undefined,
  polled: () => undefined,
  signatureRefused: () => undefined,
  receiptFailed: () => undefined,
  jobsRecreated: () => undefined,
  jobWorkerReplaced: () => undefined,
};

/** @param observe - if it throws, nothing is measured */
export function openObserver(
  platformId: number,
  observe: ((platformId: number) => WorkerObserver) | undefined,
): WorkerObserver {
  if (observe === undefined) return noObserver;
  return failsafeObserver(callWatcher('observer', () => observe(platformId), noObserver));
}

/** Its methods never throw. */
function failsafeObserver(observer: WorkerObserver): WorkerObserver {
  const methods = failsafeMethods('observer', observer, [
    'sent',
    'notSent',
    'sendGap',
    'pacerWaited',
    'journalSynced',
    'polled',
    'signatureRefused',
    'receiptFailed',
    'jobsRecreated',
    'jobWorkerReplaced',
  ]);
  return {
    ...methods,
    ...(observer.gatewayCalled && failsafeMethods('observer', observer, ['gatewayCalled'])),
    ...(observer.lookedUp && failsafeMethods('observer', observer, ['lookedUp'])),
    ...(observer.reached && failsafeMethods('observer', observer, ['reached'])),
  };
}

/** @param now - wall clock, ms */
export function observeReached(
  observer: WorkerObserver,
  state: 'sent' | 'completed',
  { createdAt, notBefore = createdAt }: Pick<Payout, 'createdAt' | 'notBefore'>,
  now: number,
): void {
  const sinceMs = now - Math.max(Date.parse(createdAt), Date.parse(notBefore));
  // Someone may have altered the times, and clocks of two machines differ.
  if (!Number.isNaN(sinceMs)) observer.reached?.(state, Math.max(0, sinceMs));
}
