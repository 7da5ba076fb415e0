import type { PayoutLedger, StateChange } from '../../../src/ledger/payout-ledger.js';
import { aPayout } from '../../ledger/support/a-payout.js';

const LIFE: readonly Pick<StateChange, 'from' | 'to'>[] = [
  { from: 'queued', to: 'sending' },
  { from: 'sending', to: 'in_progress' },
  { from: 'in_progress', to: 'completed' },
];

/** Lets payouts live through four states each, many at a time, so that their events are mixed. */
export async function produceEvents(ledger: PayoutLedger, payouts: number, prefix = 'p'): Promise<void> {
  const payoutIds = Array.from({ length: payouts }, (_, index) => `${prefix}-${index + 1}`);
  const BATCH = 250;
  for (let start = 0; start < payouts; start += BATCH) {
    const batch = payoutIds.slice(start, start + BATCH);
    await ledger.enqueue(batch.map((payoutId) => aPayout(payoutId)));
    await Promise.all(
      batch.map(async (payoutId) => {
        for (const change of LIFE) await ledger.change({ payoutId, ...change });
      }),
    );
  }
}
