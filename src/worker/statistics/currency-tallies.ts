import { fromUnits, toUnits } from '../../decimal.js';
import type { PaymentFacts } from '../../ledger/payment-facts.js';
import type { CurrencySum } from '../../ledger/statistics.js';

interface Tally {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  count: number;
  units: bigint;
}

/** Payouts counted and summed exactly, separately for each currency id and symbol. */
export class CurrencyTallies {
  readonly #tallies = new Map<string, Tally>();

  constructor(sums: readonly CurrencySum[] = []) {
    for (const { paymentId, symbol, count, amount } of sums) {
      this.#tallies.set(keyOf(paymentId, symbol), { paymentId, symbol, count, units: toUnits(amount) });
    }
  }

  /** @param times - -1 takes the payout out */
  add({ paymentId, symbol, amount }: PaymentFacts, times: 1 | -1): void {
    const key = keyOf(paymentId, symbol);
    const tally = this.#tallies.get(key) ?? { paymentId, symbol, count: 0, units: 0n };
    tally.count += times;
    tally.units += BigInt(times) * toUnits(amount);
    if (tally.count === 0 && tally.units === 0n) this.#tallies.delete(key);
    else this.#tallies.set(key, tally);
  }

  /** Of all currencies. */
  get count(): number {
    return [...this.#tallies.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** By currency id, then by symbol. */
  list(): CurrencySum[] {
    return [...this.#tallies.values()]
      .map(({ paymentId, symbol, count, units }) => ({ paymentId, symbol, count, amount: fromUnits(units) }))
      .sort((one, other) => one.paymentId - other.paymentId || (one.symbol ?? '').localeCompare(other.symbol ?? ''));
  }
}

function keyOf(paymentId: number, symbol: string | undefined): string {
  return `${paymentId} ${symbol ?? ''}`;
}
