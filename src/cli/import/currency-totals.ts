import { fromUnits, toUnits, worthInUnits } from '../../base/decimal.js';
import { formatAmount, formatExact } from '../../base/format.js';
import { compareBalance } from '../../ledger/reads/balance-cover.js';
import type { Currency, GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { ValidPayout } from '../../ledger/payout.js';
import { formatTable } from '../output/format-table.js';

export interface CurrencyTotal {
  readonly paymentId: number;
  readonly symbol?: string;
  readonly payouts: number;
  /** The exact sum, a decimal string. */
  readonly amount: string;
}

type AmountToPay = Pick<ValidPayout, 'paymentId' | 'symbol' | 'amount'>;

interface Sum {
  readonly first: AmountToPay;
  payouts: number;
  units: bigint;
}

export class CurrencyTotals {
  readonly #sums = new Map<string, Sum>();

  add(payout: AmountToPay): void {
    const key = `${payout.paymentId} ${payout.symbol ?? ''}`;
    const sum = this.#sums.get(key) ?? { first: payout, payouts: 0, units: 0n };
    sum.payouts += 1;
    sum.units += toUnits(payout.amount);
    this.#sums.set(key, sum);
  }

  list(): CurrencyTotal[] {
    return [...this.#sums.values()]
      .map(({ first: { paymentId, symbol }, payouts, units }) => ({
        paymentId,
        ...(symbol === undefined ? {} : { symbol }),
        payouts,
        amount: fromUnits(units),
      }))
      .sort((a, b) => a.paymentId - b.paymentId || (a.symbol ?? '').localeCompare(b.symbol ?? ''));
  }
}

export function formatTotals(totals: readonly CurrencyTotal[], currencies: readonly Currency[]): string {
  const rows = totals.map(({ paymentId, symbol, payouts, amount }) => {
    const currency = currencies.find((known) => known.paymentId === paymentId);
    return [
      '',
      String(paymentId),
      symbol ?? '',
      String(payouts),
      // The id has its own column.
      formatExact(amount, currency?.name),
      symbol === undefined ? formatWorth(amount, currency?.usdRate) : '',
    ];
  });
  return formatTable([['', 'PAYMENT ID', 'SYMBOL', 'PAYOUTS', 'AMOUNT', 'USD'], ...rows], [1, 3, 4, 5], [1, 4]);
}

/** Cents are enough to notice a wrong currency. */
function formatWorth(amount: string, rate: string | undefined): string {
  if (rate === undefined) return '';
  const cents = worthInUnits(amount, rate) / CENT;
  return formatAmount(fromUnits(cents * CENT));
}

const CENT = 10n ** 34n;

/**
 * What the gateway has of each currency beside what a file needs of it. Amounts with a symbol are left out: they may be
 * in another currency.
 */
export function formatCover(
  totals: readonly CurrencyTotal[],
  facts: Pick<GatewayFacts, 'balance' | 'currencies'>,
): string {
  const needed = totals
    .filter(({ symbol }) => symbol === undefined)
    .map(({ paymentId, payouts, amount }) => ({ paymentId, symbol: undefined, count: payouts, amount }));
  return compareBalance(facts, needed)
    .filter(({ queued }) => queued !== undefined && queued !== '0')
    .map(({ currency, balance, queued = '', isEnough }) => {
      const has = `The gateway's balance is ${formatAmount(balance, currency)}, these payouts need ${formatAmount(queued, currency)}`;
      return isEnough ? `${has}.\n` : `${has}: more than there is.\n`;
    })
    .join('');
}
