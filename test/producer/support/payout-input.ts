import type { PayoutInput } from '../../../src/ledger/payout.js';

/** A payout that is right in every field, with what the test changes. */
export function payoutInput(changes: Partial<PayoutInput> = {}): PayoutInput {
  return {
    payoutId: 'p-1',
    paymentId: 6,
    amount: '12.5',
    addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
    ...changes,
  };
}
