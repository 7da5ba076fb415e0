import { randomInt } from 'node:crypto';
import { followSignals, isAborted, systemClock, untilAborted } from '../../base/clock.js';
import { ClosedError, PayoutError, WaitTimeoutError } from '../../base/errors.js';
import type { GatewayApi } from '../../base/settings.js';
import type { Payout, ValidPayout } from '../../ledger/payout.js';
import { type EventPosition, readEvents } from '../../producer/events/payout-events.js';
import { type DemoStage, JITTER, openStage } from './demo-stage.js';
import { type DemoSummary, summarise } from './demo-summary.js';
import type { DemoView } from './demo-view.js';
import { PayoutBoard } from './payout-board.js';

export interface Demo {
  readonly api: GatewayApi;
  readonly payouts: readonly ValidPayout[];
  readonly chaos: boolean;
  readonly keep: boolean;
  readonly view: DemoView;
  /** Called while everything still runs. */
  readonly onSummary: (summary: DemoSummary, stage: DemoStage) => void;
  readonly stop: AbortSignal;
}

/**
 * Always stops what it starts.
 * @param path - PATH of the worker's process
 * @throws ClosedError if stopped before the summary
 * @throws RedisUnavailableError without `redis-server`
 */
export async function runDemo(demo: Demo, path: string): Promise<DemoSummary> {
  const { view, stop, keep, onSummary } = demo;
  const stage = await openStage(path, demo.api);
  let summary: DemoSummary | undefined;
  try {
    summary = await payOut(stage, demo);
    view.close();
    onSummary(summary, stage);
    if (keep) await untilAborted(stop);
    return summary;
  } catch (error) {
    // Ctrl-C reaches the children too, and causes the later failures.
    if (!stop.aborted) throw error;
    throw new ClosedError('The demo was interrupted; everything that it started has been stopped');
  } finally {
    view.close();
    await stage.close();
  }
}

async function payOut(stage: DemoStage, demo: Demo): Promise<DemoSummary> {
  const { payouts, chaos, view, stop } = demo;
  const startedAt = systemClock.now();
  const board = new PayoutBoard(payouts, () => stage.sandbox.arrivals());
  introduce(stage, demo, view);
  await stage.producer.enqueueMany(payouts);
  stage.worker.start();

  const ended = new AbortController();
  const { signal: either } = followSignals(stop, ended.signal);
  const killing = chaos ? causeChaos(stage, board, view, either) : Promise.resolve();
  try {
    await Promise.all([followPayouts(stage, board, view, startedAt, either), killing]);
  } finally {
    // Otherwise the chaos starts a worker that is never stopped.
    ended.abort();
    await Promise.allSettled([killing]);
  }
  if (stop.aborted) throw new ClosedError('The demo was interrupted');
  return summarise({
    payouts: await fetchPayouts(stage, payouts),
    payments: stage.sandbox.payments(),
    sandbox: stage.sandbox.stats(),
    pausedReason: board.pausedReason,
    chaos,
    workerKills: stage.worker.kills,
    durationMs: systemClock.now() - startedAt,
  });
}

function introduce({ redis, sandbox }: DemoStage, { payouts, api }: Demo, view: DemoView): void {
  const { latencyBeforeMs: before, latencyAfterMs: after } = JITTER;
  view.note(`Redis    ${redis.url}, append-only, fsync on every write`);
  view.note(
    `Gateway  ${sandbox.url} (API ${api}), a sandbox that blocks accounts which send faster than once a second;\n         requests take ${before.min}-${before.max} ms to arrive, responses ${after.min}-${after.max} ms`,
  );
  view.note('Worker   a separate process; it first waits some seconds to be sure that no other worker sends');
  view.note(`Payouts  ${payouts.length}`);
}

async function fetchPayouts({ producer }: DemoStage, payouts: readonly ValidPayout[]): Promise<Payout[]> {
  const found = await Promise.all(payouts.map(async ({ payoutId }) => producer.get(payoutId)));
  return found.map((payout, index) => {
    if (payout === undefined) throw new Error(`Payout ${payouts[index]?.payoutId ?? ''} was lost`);
    return payout;
  });
}

const CHECK_EVERY_MS = 100;
const EVENTS_PER_CHECK = 1_000;
/** Longer than any takeover or response takes here. */
const STALLED_AFTER_MS = 30_000;

/**
 * Runs until all payouts are settled, the account is paused (only an operator resumes it), or the signal is aborted.
 * @throws WaitTimeoutError if no payout changed for too long
 * @throws PayoutError if the worker exited
 */
async function followPayouts(
  stage: DemoStage,
  board: PayoutBoard,
  view: DemoView,
  startedAt: number,
  stop: AbortSignal,
): Promise<void> {
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

const FEWEST_KILLS = 3;
const MOST_KILLS = 8;
const PAYOUTS_PER_KILL = 5;

/** About the time from one payout to the next: a kill can hit any moment of a send. */
const PERIOD_MS = 1_250;
const KILL_CHECK_EVERY_MS = 20;

/** Resolves after the last restart. The signal ends it between two kills. */
async function causeChaos(
  { worker, producer }: DemoStage,
  board: PayoutBoard,
  view: DemoView,
  stop: AbortSignal,
): Promise<void> {
  for (const sentCount of drawKillPoints(board.rows.length)) {
    while (board.sentCount < sentCount && board.pausedReason === undefined && !isAborted(stop)) {
      await systemClock.sleep(KILL_CHECK_EVERY_MS, stop);
    }
    await systemClock.sleep(randomInt(PERIOD_MS), stop);
    if (isAborted(stop)) return;
    const killed = worker.pid ?? 0;
    await worker.kill();
    // Nothing else writes to the ledger now: this is exactly what the killed worker left.
    const { payouts: cutOff } = await producer.list({ state: 'sending' });
    worker.start();
    const during = cutOff[0] === undefined ? 'between two sends' : `while it sent ${cutOff[0].payoutId}`;
    view.note(`✖ worker ${killed} killed with SIGKILL ${during}; restarted as ${worker.pid ?? 0}`);
  }
}

/** A kill after each number of sent payouts: one in each stretch of the run, except the last. */
function drawKillPoints(payouts: number): number[] {
  const kills = Math.min(MOST_KILLS, Math.max(FEWEST_KILLS, Math.round(payouts / PAYOUTS_PER_KILL)));
  const stretch = payouts / (kills + 1);
  return Array.from({ length: kills }, (_, index) => {
    const first = Math.floor(index * stretch) + 1;
    const last = Math.max(first, Math.floor((index + 1) * stretch));
    return Math.min(payouts, randomInt(first, last + 1));
  });
}
