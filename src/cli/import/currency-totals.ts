import { fromUnits, toUnits } from '../../base/decimal.js';
import { formatAmount } from '../../base/format.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
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
  const rows = totals.map(({ paymentId, symbol, payouts, amount }) => [
    '',
    String(paymentId),
    symbol ?? '',
    String(payouts),
    // The id has its own column.
    formatAmount(amount, currencies.find((known) => known.paymentId === paymentId)?.name),
  ]);
  return formatTable([['', 'PAYMENT ID', 'SYMBOL', 'PAYOUTS', 'AMOUNT'], ...rows], [1, 3, 4], [1, 4]);
}
