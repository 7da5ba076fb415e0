import { randomInt } from 'node:crypto';
import { isAborted, systemClock } from '../../clock.js';
import type { PayoutProducer } from '../../control/payout-producer.js';
import type { DemoWorker } from './demo-worker.js';
import type { PayoutBoard } from './payout-board.js';

export interface Chaos {
  readonly worker: DemoWorker;
  readonly producer: PayoutProducer;
  readonly board: PayoutBoard;
  readonly note: (text: string) => void;
  readonly stop: AbortSignal;
}

const FEWEST_KILLS = 3;
const MOST_KILLS = 8;
const PAYOUTS_PER_KILL = 5;

/** About the time from one payout to the next: a kill can hit any moment of a send. */
const PERIOD_MS = 1_250;
const CHECK_EVERY_MS = 20;

/**
 * Kills the worker at random moments throughout the run, and restarts it each time.
 *
 * Resolves after the last restart; the signal ends it between two kills.
 */
export async function causeChaos({ worker, producer, board, note, stop }: Chaos): Promise<void> {
  for (const sentCount of drawKillPoints(board.rows.length)) {
    while (board.sentCount < sentCount && board.pausedReason === undefined && !isAborted(stop)) {
      await systemClock.sleep(CHECK_EVERY_MS, stop);
    }
    await systemClock.sleep(randomInt(PERIOD_MS), stop);
    if (isAborted(stop)) return;
    const killed = worker.pid ?? 0;
    await worker.kill();
    // Nothing else writes to the ledger now, so this is exactly what the worker left behind.
    const { payouts: cutOff } = await producer.list({ state: 'sending' });
    worker.start();
    const during = cutOff[0] === undefined ? 'between two sends' : `while it sent ${cutOff[0].payoutId}`;
    note(`✖ worker ${killed} killed with SIGKILL ${during}; restarted as ${worker.pid ?? 0}`);
  }
}

/** The number of sent payouts after which each kill comes: one in each stretch of the run except the last. */
function drawKillPoints(payouts: number): number[] {
  const kills = Math.min(MOST_KILLS, Math.max(FEWEST_KILLS, Math.round(payouts / PAYOUTS_PER_KILL)));
  const stretch = payouts / (kills + 1);
  return Array.from({ length: kills }, (_, index) => {
    const first = Math.floor(index * stretch) + 1;
    const last = Math.max(first, Math.floor((index + 1) * stretch));
    return Math.min(payouts, randomInt(first, last + 1));
  });
}
