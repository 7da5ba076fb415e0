import { isAborted, systemClock } from '../../clock.js';
import { PayoutError, WaitTimeoutError } from '../../errors.js';
import { readEvents, type EventPosition } from '../../producer/events/payout-events.js';
import type { DemoStage } from './demo-stage.js';
import type { DemoView } from './demo-view.js';
import type { PayoutBoard } from './payout-board.js';

export interface Following {
  readonly stage: DemoStage;
  readonly board: PayoutBoard;
  readonly view: DemoView;
  readonly stop: AbortSignal;
  /** When the demo started, on the clock's scale. */
  readonly startedAt: number;
}

const CHECK_EVERY_MS = 100;
const EVENTS_PER_CHECK = 1_000;
/** Longer than any takeover or response takes here. */
const STALLED_AFTER_MS = 30_000;

/**
 * Shows every change until all payouts are settled, the account is paused (only an operator resumes it), or the signal is
 * aborted.
 * @throws WaitTimeoutError when no payout has changed for too long
 * @throws PayoutError when the worker exited
 */
export async function followPayouts({ stage, board, view, stop, startedAt }: Following): Promise<void> {
  let position: EventPosition = { afterEventId: '0-0' };
  let movedAt = systemClock.now();
  while (!board.isSettled && board.pausedReason === undefined) {
    await systemClock.sleep(CHECK_EVERY_MS, stop);
    if (isAborted(stop)) return;
    const now = systemClock.now();
    for (const event of await readEvents(stage.ledger, position, EVENTS_PER_CHECK)) {
      position = { afterEventId: event.eventId };
      movedAt = now;
      const change = board.apply(event);
      if (change !== undefined) view.change(change, now - startedAt);
    }
    const { smallestGapMs, meanGapMs } = stage.sandbox.stats();
    const { pid: workerPid } = stage.worker;
    view.draw({ rows: board.rows, elapsedMs: now - startedAt, smallestGapMs, meanGapMs, workerPid });
    checkProgress(stage, now - movedAt);
  }
}

function checkProgress({ worker }: DemoStage, idleMs: number): void {
  if (worker.hasExited) throw new PayoutError('CLOSED', `The worker exited.\n${worker.readLogEnd()}`);
  if (idleMs > STALLED_AFTER_MS) {
    throw new WaitTimeoutError(`No payout has changed for ${STALLED_AFTER_MS / 1_000} s.\n${worker.readLogEnd()}`);
  }
}
