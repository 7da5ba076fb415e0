import { fromUnits, toUnits, worthInUnits } from '../../decimal.js';
import type { Balance, Currency } from '../../ledger/gateway-facts.js';
import type { CurrencySum } from '../../ledger/statistics.js';

/** A balance against what is queued in the same unit. */
export interface ComparedBalance extends Balance {
  /** What is queued, a decimal string; undefined where it cannot be told in the balance's unit. */
  readonly queued: string | undefined;
  /** What is missing to send all of it; undefined where nothing is, or that cannot be told. */
  readonly missing: string | undefined;
}

/** The unit of the rates that the gateway gives. */
const RATED_IN = 'USD';

/**
 * Compares each balance with the queued payouts that it pays: those of its currency, or, where the gateway keeps the
 * account in dollars, all of them at the gateway's rates.
 */
export function compareBalances(
  balances: readonly Balance[],
  queued: readonly CurrencySum[],
  currencies: readonly Currency[],
): ComparedBalance[] {
  return balances.map((balance) => {
    const units = sumQueued(balance, queued, currencies);
    const missing = units === undefined ? 0n : units - toUnits(balance.amount);
    return {
      ...balance,
      queued: units === undefined ? undefined : fromUnits(units),
      missing: missing > 0n ? fromUnits(missing) : undefined,
    };
  });
}

function sumQueued(
  { paymentId, symbol }: Balance,
  queued: readonly CurrencySum[],
  currencies: readonly Currency[],
): bigint | undefined {
  if (paymentId !== undefined) {
    return sum(queued.filter((each) => each.paymentId === paymentId).map(({ amount }) => toUnits(amount)));
  }
  if (symbol !== RATED_IN) return undefined;
  const worths = queued.map((each) => {
    const rate = currencies.find((currency) => currency.paymentId === each.paymentId)?.usdRate;
    return rate === undefined ? undefined : worthInUnits(each.amount, rate);
  });
  return worths.includes(undefined) ? undefined : sum(worths.filter((worth) => worth !== undefined));
}

function sum(units: readonly bigint[]): bigint {
  return units.reduce((total, each) => total + each, 0n);
}
