import type { Payout } from '../../../../src/ledger/payout.js';
import { toChangeError, type PayoutLedger, type StateChange } from '../../../../src/ledger/payout-ledger.js';
import type { HeldPayouts } from '../../../../src/worker/policy/hold-source.js';
import { LedgerCall, type LedgerLinkOptions } from '../ledger-call.js';
import type { WorkerLedger } from '../ledger-link.js';

/** What the policy asks of the simulated Redis beside the sender's calls. */
export function linkHolds(
  options: LedgerLinkOptions,
  { readPayout }: Pick<WorkerLedger, 'readPayout'>,
): HeldPayouts & Pick<PayoutLedger, 'change'> {
  const held = async (): Promise<readonly Payout[]> =>
    new LedgerCall(options, 'held', '', async (ledger) =>
      Promise.resolve(ledger.payouts().filter(({ state }) => state === 'held')),
    ).start();
  return {
    read: readPayout,
    held: async () => ({ payouts: await held(), next: undefined }),
    queued: async () => Promise.resolve({ payouts: [], next: undefined }),
    marked: async () => Promise.resolve([]),
    unmark: async () => Promise.resolve(),
    change: async (change: StateChange) => {
      const rejection = await new LedgerCall(options, 'change', change.payoutId, async (ledger) =>
        Promise.resolve(ledger.change(change)),
      ).start();
      if (rejection !== undefined) throw toChangeError(rejection, change);
      options.process.world.situations.meet('a payout is released by the policy');
    },
  };
}
