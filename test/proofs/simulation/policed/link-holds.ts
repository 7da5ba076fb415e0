import type { HeldPage, HeldPayouts } from '../../../../src/control/worker/hold-releaser.js';
import { type PayoutLedger, toChangeError } from '../../../../src/ledger/payout-ledger.js';
import type { PayoutState } from '../../../../src/ledger/states.js';
import type { LedgerCall, WorkerLedger } from '../../../world/ledger-link.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import type { World } from '../../../world/world.js';

export function linkHolds(
  { situations }: World,
  ledger: WorldLedger,
  call: LedgerCall,
  { readPayout }: Pick<WorkerLedger, 'readPayout'>,
): HeldPayouts & Pick<PayoutLedger, 'change'> {
  const pageOf = (state: PayoutState, after?: string, limit = Infinity): HeldPage => {
    const found = ledger.inOrderOf(state).filter(([place]) => place > Number(after ?? -1));
    const page = found.slice(0, limit);
    const last = page.at(-1)?.[0];
    return { payouts: page.map(([, payout]) => payout), next: last === undefined ? after : String(last) };
  };
  const ask = async <Reply>(name: string, about: string, run: () => Reply | Promise<Reply>): Promise<Reply> =>
    call(name, about, async () => run());
  return {
    read: readPayout,
    held: async () => ask('held', '', () => ({ ...pageOf('held'), next: undefined })),
    queued: async (after, limit) => ask('queued', '', () => pageOf('queued', after, limit)),
    marked: async (limit) => ask('marked', '', () => [...ledger.marked(limit)]),
    unmark: async (payoutIds) => {
      if (payoutIds.length > 0) await ask('unmark', payoutIds.join(' '), async () => ledger.unmark(payoutIds));
    },
    change: async (change) => {
      const rejection = await ask('change', change.payoutId, async () => ledger.change(change));
      if (rejection !== undefined) throw toChangeError(rejection, change);
      situations?.meet('a payout is released by the policy');
    },
  };
}
