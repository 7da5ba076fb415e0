import { formatMicros, worthInMicros } from '../control/policy/usd.js';
import { amountField } from '../fields.js';
import type { Currency } from '../ledger/gateway-facts.js';

const CENT = 10_000n;

/**
 * What an amount is worth by the gateway's rate that Redis has, for people: `≈ 2500.00 USD`.
 * @returns undefined where the rate is not known, or somebody altered the amount to what is none
 */
export function usdWorth(amount: string, paymentId: number, currencies: readonly Currency[]): string | undefined {
  const { usdRate } = currencies.find((known) => known.paymentId === paymentId) ?? {};
  const isUsable = amountField.safeParse(amount).success && amountField.safeParse(usdRate).success;
  if (!isUsable || usdRate === undefined) return undefined;
  const micros = worthInMicros(amount, usdRate);
  return `≈ ${formatMicros(((micros + CENT - 1n) / CENT) * CENT)} USD`;
}
