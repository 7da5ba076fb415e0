import { createHash } from 'node:crypto';
import type { Currency } from './currency.js';

export interface DepositWallet {
  readonly address: string;
  /** Empty for currencies that have none. */
  readonly destinationTag: string;
}

/**
 * The wallet for one deposit: the same call gives the same address for ever, also after a restart.
 *
 * Addresses are hashes with an unmistakable prefix. Nobody should be able to pay real money to one.
 */
export function depositWalletOf(platformId: number, currency: Currency, orderId: string): DepositWallet {
  const digest = createHash('sha256').update(`${platformId}/${currency.paymentId}/${orderId}`).digest();
  return {
    address: `sandbox${currency.code}${digest.toString('hex', 0, 20)}`,
    destinationTag: currency.hasDestinationTag ? String(digest.readUInt32BE(20)) : '',
  };
}
