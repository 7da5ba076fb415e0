import { fromUnits, toUnits, worthInUnits } from '../decimal.js';
import type { Balance, Currency, GatewayFacts } from './gateway-facts.js';
import type { CurrencySum } from './statistics.js';

/** A balance, and what is queued that has to be paid from it. */
export interface BalanceCover {
  /** The currency's name, or the account's symbol; `account` where the gateway names neither. */
  readonly currency: string;
  /** Decimal strings of the same unit. `queued` is undefined where it cannot be expressed in that of the balance. */
  readonly balance: string;
  readonly queued: string | undefined;
  /** False only where it is known that the balance does not last. */
  readonly isEnough: boolean;
}

/** What a balance without a currency, or in a symbol that is none of a currency, is taken for. */
const ACCOUNT_SYMBOL = 'USD';

/**
 * Compares each balance with what is queued in its currency. A balance that names no currency, or `USD`, is compared with
 * the worth of everything that is queued at the gateway's own rates; without a rate for all of it, with nothing.
 */
export function compareBalance(
  { balance, currencies }: Pick<GatewayFacts, 'balance' | 'currencies'>,
  queued: readonly CurrencySum[],
): BalanceCover[] {
  return balance.map((entry) => {
    const needed = neededFrom(entry, currencies, queued);
    return {
      currency: nameBalance(entry, currencies),
      balance: entry.amount,
      queued: needed === undefined ? undefined : fromUnits(needed),
      isEnough: needed === undefined || needed <= toUnits(entry.amount),
    };
  });
}

/** The currency's name, or the account's symbol; `account` where the gateway names neither. */
export function nameBalance(
  { paymentId, symbol }: Pick<Balance, 'paymentId' | 'symbol'>,
  currencies: readonly Currency[],
): string {
  if (paymentId === undefined) return symbol ?? 'account';
  return currencies.find((known) => known.paymentId === paymentId)?.name ?? `payment_id ${paymentId}`;
}

function neededFrom(
  { paymentId, symbol }: Balance,
  currencies: readonly Currency[],
  queued: readonly CurrencySum[],
): bigint | undefined {
  if (paymentId !== undefined) return sumAmounts(queued.filter((sum) => sum.paymentId === paymentId));
  const named = currencies.filter(({ name }) => name === symbol || name.startsWith(`${symbol ?? ''} (`));
  if (symbol !== undefined && named.length > 0) {
    return sumAmounts(queued.filter((sum) => named.some((currency) => currency.paymentId === sum.paymentId)));
  }
  return symbol === undefined || symbol === ACCOUNT_SYMBOL ? sumWorth(queued, currencies) : undefined;
}

function sumAmounts(sums: readonly CurrencySum[]): bigint {
  return sums.reduce((total, { amount }) => total + toUnits(amount), 0n);
}

/** In USD. */
function sumWorth(sums: readonly CurrencySum[], currencies: readonly Currency[]): bigint | undefined {
  let total = 0n;
  for (const { paymentId, amount } of sums) {
    const rate = currencies.find((known) => known.paymentId === paymentId)?.usdRate;
    if (rate === undefined) return undefined;
    total += worthInUnits(amount, rate);
  }
  return total;
}
