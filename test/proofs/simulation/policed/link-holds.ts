import { type PayoutLedger, type StateChange, toChangeError } from '../../../../src/ledger/payout-ledger.js';
import type { HeldPage, HeldPayouts } from '../../../../src/control/worker/hold-releaser.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import { LedgerCall, type LedgerLinkOptions } from '../ledger-call.js';
import type { WorkerLedger } from '../ledger-link.js';

/** What the policy asks of the simulated Redis beside the sender's calls. */
export function linkHolds(
  options: LedgerLinkOptions,
  { readPayout }: Pick<WorkerLedger, 'readPayout'>,
): HeldPayouts & Pick<PayoutLedger, 'change'> {
  const call = async <Reply>(
    name: string,
    about: string,
    run: (ledger: WorldLedger) => Reply | Promise<Reply>,
  ): Promise<Reply> => new LedgerCall(options, name, about, async (ledger) => run(ledger)).start();
  return {
    read: readPayout,
    held: async () => call('held', '', (ledger) => ({ payouts: payoutsIn(ledger, 'held'), next: undefined })),
    queued: async (after, limit) => call('queued', '', (ledger) => queuedAfter(ledger, after, limit)),
    marked: async (limit) => call('marked', '', (ledger) => [...ledger.marked(limit)]),
    unmark: async (payoutIds) => {
      if (payoutIds.length === 0) return;
      await call('unmark', payoutIds.join(' '), async (ledger) => ledger.unmark(payoutIds));
    },
    change: async (change: StateChange) => {
      const rejection = await call('change', change.payoutId, async (ledger) => ledger.change(change));
      if (rejection !== undefined) throw toChangeError(rejection, change);
      options.process.world.situations.meet('a payout is released by the policy');
    },
  };
}

function payoutsIn(ledger: WorldLedger, state: 'held' | 'queued'): HeldPage['payouts'] {
  return ledger.inOrderOf(state).map(([, payout]) => payout);
}

function queuedAfter(ledger: WorldLedger, after: string | undefined, limit: number): HeldPage {
  const found = ledger
    .inOrderOf('queued')
    .filter(([place]) => place > Number(after ?? -1))
    .slice(0, limit);
  const last = found.at(-1)?.[0];
  return { payouts: found.map(([, payout]) => payout), next: last === undefined ? after : String(last) };
}
