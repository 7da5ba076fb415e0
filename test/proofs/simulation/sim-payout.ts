import type { ValidPayout } from '../../../src/ledger/payout.js';

/** Each payout has a wallet of its own, by which the gateway's book distinguishes them. */
export function walletOf(payoutId: string): string {
  return `wallet-${payoutId}`;
}

export function newPayout(payoutId: string): ValidPayout {
  return { payoutId, paymentId: 7, amount: '12.5', addressTo: walletOf(payoutId) };
}
