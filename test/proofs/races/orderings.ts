import fc from 'fast-check';
import type { LedgerRig } from '../../ledger/contract/ledger-rig.js';
import { racePlans } from './race-plan.js';
import type { RaceWorkerOptions } from './race-worker.js';
import { runOrdering } from './run-ordering.js';

export interface OrderingsOptions {
  /** Makes an empty ledger for each ordering. */
  readonly makeRig: () => LedgerRig;
  /** For a planted mistake. */
  readonly alterRuntime?: RaceWorkerOptions['alterRuntime'];
}

/** What all orderings came to: orderings in which next to nothing is sent would prove nothing. */
export interface OrderingsCounts {
  begun: number;
  paid: number;
}

/** One ordering a run: a plan, and the order in which everything in it happens. */
export function orderings(
  counts: OrderingsCounts,
  { makeRig, alterRuntime }: OrderingsOptions,
): fc.IAsyncProperty<[unknown, unknown]> {
  return fc.asyncProperty(racePlans, fc.scheduler(), async (plan, scheduler) => {
    const rig = makeRig();
    try {
      const { begun, paid } = await runOrdering(scheduler, plan, { rig, alterRuntime });
      counts.begun += begun;
      counts.paid += paid;
    } finally {
      await rig.close();
    }
  });
}
