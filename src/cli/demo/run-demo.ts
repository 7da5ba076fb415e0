import { followSignals, systemClock, untilAborted } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import type { Payout, ValidPayout } from '../../ledger/payout.js';
import { causeChaos } from './cause-chaos.js';
import { JITTER, openStage, type DemoStage } from './demo-stage.js';
import { summarise, type DemoSummary } from './demo-summary.js';
import type { DemoView } from './demo-view.js';
import { followPayouts } from './follow-payouts.js';
import { PayoutBoard } from './payout-board.js';

export interface DemoOptions {
  readonly payouts: readonly ValidPayout[];
  readonly chaos: boolean;
  /** Keep everything running after the summary, until `stop`. */
  readonly keep: boolean;
  /** The PATH for the worker's process. */
  readonly path: string;
  readonly view: DemoView;
  /** Called with the summary while everything still runs. */
  readonly onSummary: (summary: DemoSummary, stage: DemoStage) => void;
  readonly stop: AbortSignal;
}

/**
 * Sends the payouts through the demo's own gateway, Redis and worker, and stops them all on every way out.
 * @throws ClosedError when it was stopped before the summary
 * @throws RedisUnavailableError without `redis-server`
 */
export async function runDemo(options: DemoOptions): Promise<DemoSummary> {
  const { view, stop, keep, onSummary } = options;
  const stage = await openStage(options.path);
  let summary: DemoSummary | undefined;
  try {
    summary = await payOut(stage, options);
    view.close();
    onSummary(summary, stage);
    if (keep) await untilAborted(stop);
    return summary;
  } catch (error) {
    // Ctrl-C reaches the children as well: later failures are its consequence.
    if (!stop.aborted) throw error;
    throw new ClosedError('The demo was interrupted; everything that it started has been stopped');
  } finally {
    view.close();
    await stage.close();
  }
}

async function payOut(stage: DemoStage, options: DemoOptions): Promise<DemoSummary> {
  const { payouts, chaos, view, stop } = options;
  const startedAt = systemClock.now();
  const board = new PayoutBoard(payouts, () => stage.sandbox.arrivals());
  introduce(stage, payouts.length, view);
  await stage.producer.enqueueMany(payouts);
  stage.worker.start();

  const ended = new AbortController();
  const { signal: either } = followSignals(stop, ended.signal);
  const note = (text: string): void => {
    view.note(text);
  };
  const killing = chaos ? causeChaos({ ...stage, board, note, stop: either }) : Promise.resolve();
  try {
    await Promise.all([followPayouts({ stage, board, view, stop: either, startedAt }), killing]);
  } finally {
    // It must not start another worker, which nothing would stop.
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

function introduce({ redis, sandbox }: DemoStage, count: number, view: DemoView): void {
  const { latencyBeforeMs: before, latencyAfterMs: after } = JITTER;
  view.note(`Redis    ${redis.url}, append-only, fsync on every write`);
  view.note(
    `Gateway  ${sandbox.url}, a sandbox that blocks accounts which send faster than once a second;\n         requests take ${before.min}-${before.max} ms to arrive, responses ${after.min}-${after.max} ms`,
  );
  view.note('Worker   a separate process; it first waits some seconds to be sure that no other worker sends');
  view.note(`Payouts  ${count}`);
}

async function fetchPayouts({ producer }: DemoStage, payouts: readonly ValidPayout[]): Promise<Payout[]> {
  const found = await Promise.all(payouts.map(async ({ payoutId }) => producer.get(payoutId)));
  return found.map((payout, index) => {
    if (payout === undefined) throw new Error(`Payout ${payouts[index]?.payoutId ?? ''} was lost`);
    return payout;
  });
}
