import { fromUnits, toUnits } from '../../base/decimal.js';
import { PAYOUT_STATES, type PayoutState } from '../states.js';
import type { PaymentFacts } from '../payment-facts.js';
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
    for (const sum of sums) this.#add(sum, sum.count, toUnits(sum.amount));
  }

  /** @param times - -1 takes the payout out */
  add(facts: PaymentFacts, times: 1 | -1): void {
    this.#add(facts, times, BigInt(times) * toUnits(facts.amount));
  }

  #add({ paymentId, symbol }: Pick<PaymentFacts, 'paymentId' | 'symbol'>, count: number, units: bigint): void {
    const key = keyOf(paymentId, symbol);
    const tally = this.#tallies.get(key) ?? { paymentId, symbol, count: 0, units: 0n };
    tally.count += count;
    tally.units += units;
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

export function tallyStates(sums?: Partial<StateSums>): StateTallies {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, new CurrencyTallies(sums?.[state])])) as StateTallies;
}

/** Of text in Redis, which anyone may have stored. @returns undefined if it is not that of sums */
export function parseStates(text: string | null | undefined): StateTallies | undefined {
  try {
    const sums = JSON.parse(text ?? 'null') as StateSums | null;
    return sums === null ? undefined : tallyStates(sums);
  } catch {
    return undefined;
  }
}

export function listStates(tallies: StateTallies): StateSums {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, tallies[state].list()])) as unknown as StateSums;
}
