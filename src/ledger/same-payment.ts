import { walletAndTagKey } from '../gateway/wallet.js';
import type { NewPayout, Payout } from './payout.js';

/** Equal for payouts that pay the same to the same for the same: each may be the other under a new id. */
export function paymentKey({
  paymentId,
  amount,
  addressTo,
  reference,
  symbol,
}: Pick<NewPayout | Payout, 'paymentId' | 'amount' | 'addressTo' | 'reference' | 'symbol'>): string {
  return JSON.stringify([paymentId, amount, walletAndTagKey(addressTo), reference ?? '', symbol ?? '']);
}
