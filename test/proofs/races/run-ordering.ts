import type { Scheduler } from 'fast-check';
import type { Payout } from '../../../src/ledger/payout.js';
import { takeLease, type LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { TRANSITIONS } from '../../../src/ledger/states.js';
import { RaceGateway } from './race-gateway.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { RaceLedger } from './race-ledger.js';
import { RaceOperators } from './race-operators.js';
import type { RacePlan } from './race-plan.js';
import { runWorker, type RaceWorkerOptions } from './race-worker.js';
import { RaceWorld } from './race-world.js';

/** What an ordering came to, to see that they do something. */
export interface OrderingCounts {
  readonly begun: number;
  readonly paid: number;
}

export interface OrderingOptions {
  /** A ledger in which nothing is. */
  readonly rig: LedgerRig;
  /** For a planted mistake. */
  readonly alterRuntime?: RaceWorkerOptions['alterRuntime'];
}

/**
 * Runs workers, pollers, operators and the gateway in the order that the scheduler decides.
 * @throws BrokenOrdering when a promise was not kept
 */
export async function runOrdering(
  scheduler: Scheduler,
  plan: RacePlan,
  { rig, alterRuntime }: OrderingOptions,
): Promise<OrderingCounts> {
  const world = new RaceWorld(scheduler);
  const ledger = new RaceLedger(world, plan, rig);
  const gateway = new RaceGateway(world, plan);
  const operators = new RaceOperators({ world, ledger, gateway });
  const lines: JournalLine[] = [];
  for (const payoutId of ledger.payoutIds) await rig.enqueue(payoutId);

  const shared = { world, ledger, gateway, lines, alterRuntime };
  const second = async (): Promise<void> => {
    if (plan.secondWorkerAfter === undefined) return;
    for (let turn = 0; turn < plan.secondWorkerAfter; turn += 1) await world.turn('time passes');
    await runWorker({ ...shared, name: 'B' });
  };
  const everyone = [
    runWorker({ ...shared, name: 'A', killedAt: plan.killedAt }),
    second(),
    ...plan.acts.map(async (act) => operators.perform(act)),
  ];
  await scheduler.waitFor(Promise.all(everyone));
  // Requests in flight must do no harm either.
  await scheduler.waitIdle();
  await settle(rig);

  for (const payout of await ledger.payouts()) {
    const lies = operators.unchecked.filter((payoutId) => payoutId === payout.payoutId).length;
    for (const what of findFaults(payout, gateway.paymentsTo(payout.addressTo), lies)) world.breaks(what);
  }
  if ((await ledger.payouts()).length !== plan.payouts) world.breaks('lost: a payout is gone');
  world.expectWhole();
  return { begun: ledger.begun, paid: gateway.paid };
}

/** The next worker starts, and finds what the others have left. */
async function settle({ ledger }: LedgerRig): Promise<void> {
  const lease = await takeLease(ledger, 'Z');
  await ledger.markSendsUnknown(lease, await ledger.readSending(), 'left behind', 0);
}

/** @param lies - how often an operator may have stated it as not sent when it was sent */
function findFaults({ payoutId, state, txhash, history }: Payout, payments: readonly string[], lies: number): string[] {
  const faults: string[] = [];
  if (payments.length > 1 + lies) faults.push(`twice: ${payoutId} was paid by ${payments.join(', ')}`);
  if (state === 'sending') faults.push(`lost: ${payoutId} is sending, and nobody sends it`);
  const follows = ['in_progress', 'completed', 'failed'].includes(state);
  if (follows && !payments.includes(txhash ?? '')) faults.push(`lost: ${payoutId} is ${state}, but was never paid`);
  const isDecided = state === 'unknown' || lies > 0 || history.at(-1)?.from === 'unknown';
  if (!follows && !isDecided && payments.length > 0) faults.push(`lost: ${payoutId} is ${state}, but was paid`);
  for (const [index, { from, to }] of history.slice(1).entries()) {
    const before = history[index]?.to;
    if (from !== before || from === undefined || !TRANSITIONS.some((one) => one.from === from && one.to === to)) {
      faults.push(`history: ${payoutId} went from ${String(before)} (${String(from)}) to ${to}`);
    }
  }
  return faults;
}
