import { fromUnits, toUnits, worthInUnits } from '../../base/decimal.js';
import type { Balance, Currency, GatewayFacts } from './gateway-facts.js';
import type { CurrencySum } from './statistics.js';

export interface BalanceCover {
  /** The currency's name, or the account's symbol; `USD` if the gateway names neither. */
  readonly currency: string;
  /** Decimal strings of one unit. `queued` is undefined if it cannot be expressed in the balance's unit. */
  readonly balance: string;
  readonly queued: string | undefined;
  /** False only if the balance certainly does not suffice. */
  readonly isEnough: boolean;
}

/** The unit of the account, and so of a balance whose currency is absent or unknown. */
export const ACCOUNT_SYMBOL = 'USD';

/**
 * A balance without a currency, or in `USD`, must cover the worth of everything queued, at the gateway's own rates. If
 * a rate is missing, nothing is compared. Amounts with a symbol are left out: they may be in that currency.
 */
export function compareBalance(
  { balance, currencies }: Pick<GatewayFacts, 'balance' | 'currencies'>,
  queued: readonly CurrencySum[],
): BalanceCover[] {
  const certain = queued.filter((sum) => sum.symbol === undefined);
  return balance.map((entry) => {
    const needed = neededFrom(entry, currencies, certain);
    return {
      currency: nameBalance(entry, currencies),
      balance: entry.amount,
      queued: needed === undefined ? undefined : fromUnits(needed),
      isEnough: needed === undefined || needed <= toUnits(entry.amount),
    };
  });
}

/** A sender reads it more often. An older balance looks true and is not. */
const BALANCE_VALID_MS = 15 * 60_000;

/** As {@link compareBalance}, but empty if the balance is unknown, or was too old at that time (wall clock, ms). */
export function freshCovers(facts: GatewayFacts, queued: readonly CurrencySum[], at: number): BalanceCover[] {
  const { balanceAt } = facts;
  return balanceAt !== undefined && at - balanceAt <= BALANCE_VALID_MS ? compareBalance(facts, queued) : [];
}

export function nameBalance(
  { paymentId, symbol }: Pick<Balance, 'paymentId' | 'symbol'>,
  currencies: readonly Currency[],
): string {
  if (paymentId === undefined) return symbol ?? ACCOUNT_SYMBOL;
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
