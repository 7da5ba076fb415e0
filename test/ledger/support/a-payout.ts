import { parseInput } from '../../../src/base/fields.js';
import { payoutInputSchema, type PayoutInput, type ValidPayout } from '../../../src/ledger/payout.js';

export function aPayout(payoutId: string, given: Partial<PayoutInput> = {}): ValidPayout {
  return parseInput(payoutInputSchema, { payoutId, paymentId: 7, amount: '12.5', addressTo: 'wallet-1', ...given });
}
