import { isAborted, systemClock } from '../../clock.js';
import { ClosedError, PayoutError, WaitTimeoutError } from '../../errors.js';
import type { DemoWorker } from './demo-worker.js';

/** An account of a demo that is waited for. */
export interface DemoAccount {
  readonly platformId: number;
  readonly worker: DemoWorker;
}

/** Longer than anything takes here, also on a busy machine. */
const WAIT_MS = 90_000;
const CHECK_EVERY_MS = 100;

/**
 * Waits until the condition holds.
 * @param what - what is waited for, for the error
 * @throws WaitTimeoutError when it takes too long; PayoutError when the worker exited; ClosedError when it was stopped
 */
export async function waitUntil(
  { platformId, worker }: DemoAccount,
  what: string,
  condition: () => Promise<boolean>,
  stop: AbortSignal,
): Promise<void> {
  const deadline = systemClock.now() + WAIT_MS;
  while (!(await condition())) {
    await systemClock.sleep(CHECK_EVERY_MS, stop);
    if (isAborted(stop)) throw new ClosedError('The demo was interrupted');
    if (worker.hasExited) {
      throw new PayoutError('CLOSED', `The worker of account ${platformId} exited.\n${worker.readLogEnd()}`);
    }
    if (systemClock.now() > deadline) {
      const seconds = WAIT_MS / 1_000;
      throw new WaitTimeoutError(
        `Account ${platformId}: ${what} took more than ${seconds} s, so nothing can be judged.\n${worker.readLogEnd()}`,
      );
    }
  }
}

/** Lets some time pass. @throws ClosedError when it was stopped */
export async function pass(ms: number, stop: AbortSignal): Promise<void> {
  await systemClock.sleep(ms, stop);
  if (isAborted(stop)) throw new ClosedError('The demo was interrupted');
}
