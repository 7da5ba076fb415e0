import type { Payout } from '../../../src/ledger/payout.js';

/** A payout as retention reads it: completed, with a transaction of its own. */
export function aCompletedPayout(payoutId: string, at: string, given: Partial<Payout> = {}): Payout {
  return {
    payoutId,
    state: 'completed',
    paymentId: 6,
    amount: '12.5',
    addressTo: 'TXYZ9',
    attempt: 1,
    requeueCount: 0,
    txhash: `0x${payoutId}`,
    createdAt: at,
    updatedAt: at,
    history: [{ at, to: 'queued' }],
    ...given,
  };
}
