import { fromUnits, toUnits } from '../../base/decimal.js';
import { PAYOUT_STATES, type PayoutState } from '../states.js';
import type { PaymentFacts } from './payment-facts.js';
import type { CurrencySum } from './statistics.js';

interface Tally {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  count: number;
  units: bigint;
}

/** Exact sums for each currency id and symbol. */
export class CurrencyTallies {
  readonly #tallies = new Map<string, Tally>();

  constructor(sums: readonly CurrencySum[] = []) {
    for (const { paymentId, symbol, count, amount } of sums) {
      const key = keyOf(paymentId, symbol);
      const before = this.#tallies.get(key) ?? { count: 0, units: 0n };
      const units = before.units + toUnits(amount);
      this.#tallies.set(key, { paymentId, symbol, count: before.count + count, units });
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

export type StateTallies = Record<PayoutState, CurrencyTallies>;
export type StateSums = Readonly<Record<PayoutState, readonly CurrencySum[]>>;

export function tallyStates(sums?: Partial<StateSums> | null): StateTallies {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, new CurrencyTallies(sums?.[state])])) as StateTallies;
}

export function listStates(tallies: StateTallies): StateSums {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, tallies[state].list()])) as unknown as StateSums;
}
