import { createHash } from 'node:crypto';
import { fromUnits, toUnits, worthInUnits } from '../base/decimal.js';

export interface Currency {
  readonly paymentId: number;
  readonly code: string;
  readonly name: string;
  readonly network: string;
  /** Fixed, so that tests can predict every balance. */
  readonly usdRate: string;
  /** The fee of each payment in `/transactionstatus`. */
  readonly fee: string;
  /** Ripple XRP and the TON network: `address:destinationTag`. */
  readonly hasDestinationTag: boolean;
}

type Row = readonly [paymentId: number, code: string, name: string, network: string, usdRate: string, fee: string];

/** The numbers must not change: users write them into their tests. */
const ROWS: readonly Row[] = [
  [1, 'BTC', 'Bitcoin', 'Bitcoin', '64250.5', '0.00012'],
  [2, 'ETH', 'Ethereum', 'Ethereum', '3120.75', '0.0011'],
  [3, 'LTC', 'Litecoin', 'Litecoin', '84.2', '0.001'],
  [4, 'XRP', 'Ripple XRP', 'Ripple', '0.5275', '0.2'],
  [5, 'TON', 'Toncoin', 'TON', '6.85', '0.05'],
  [6, 'USDT', 'Tether (TRC-20)', 'Tron', '1', '1'],
  [7, 'USDT', 'Tether (ERC-20)', 'Ethereum', '1', '3.5'],
  [8, 'USDC', 'USD Coin', 'Ethereum', '1', '3.5'],
  [9, 'TRX', 'Tron', 'Tron', '0.1215', '1'],
  [10, 'DOGE', 'Dogecoin', 'Dogecoin', '0.1382', '2'],
  [11, 'BCH', 'Bitcoin Cash', 'Bitcoin Cash', '412.3', '0.0005'],
  [12, 'BNB', 'BNB', 'BNB Smart Chain', '574.6', '0.0004'],
  [13, 'SOL', 'Solana', 'Solana', '148.9', '0.008'],
];

export const CURRENCIES: readonly Currency[] = ROWS.map(([paymentId, code, name, network, usdRate, fee]) => ({
  paymentId,
  code,
  name,
  network,
  usdRate,
  fee,
  hasDestinationTag: network === 'Ripple' || network === 'TON',
}));

export function findCurrency(paymentId: number): Currency | undefined {
  return CURRENCIES.find((currency) => currency.paymentId === paymentId);
}

/** What an amount of dollars is in the coin, rounded down to the 18th place. */
export function inCoin(usd: string, { usdRate }: Currency): string {
  const units = toUnits('1');
  const places18 = units / worthInUnits('1', '0.000000000000000001');
  const exact = (toUnits(usd) * units) / toUnits(usdRate);
  return fromUnits((exact / places18) * places18);
}

interface DepositWallet {
  readonly address: string;
  /** Empty if the currency has none. */
  readonly destinationTag: string;
}

/**
 * The wallet for one deposit. The same call always gives the same address, also after a restart.
 *
 * Addresses are hashes with an unmistakable prefix, so that no real money can be paid to one.
 */
export function depositWalletOf(platformId: number, currency: Currency, orderId: string): DepositWallet {
  const digest = createHash('sha256').update(`${platformId}/${currency.paymentId}/${orderId}`).digest();
  return {
    address: `sandbox${currency.code}${digest.toString('hex', 0, 20)}`,
    destinationTag: currency.hasDestinationTag ? String(digest.readUInt32BE(20)) : '',
  };
}
