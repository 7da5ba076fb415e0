import { toUnits } from '../../decimal.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import type { Rates } from './open-sends.js';

/** What is known of the gateway's currencies when a balance is read. */
export interface Market {
  readonly currencies: readonly Currency[];
  /** For how long, in ms; undefined where they are not known. */
  readonly ageMs: number | undefined;
}

/** `/currencies` is queried every hour by default. Older rates say nothing of what a send is worth. */
const RATES_VALID_MS = 3 * 60 * 60_000;

export function currentRates({ currencies, ageMs = Infinity }: Market): Rates {
  if (ageMs > RATES_VALID_MS) return new Map();
  return new Map(
    currencies.flatMap(({ paymentId, usdRate }) =>
      usdRate === undefined ? [] : [[paymentId, toUnits(usdRate)] as const],
    ),
  );
}

export function parseRates(stored: Readonly<Record<number, string>>): Rates {
  return new Map(Object.entries(stored).map(([id, rate]) => [Number(id), toUnits(rate)] as const));
}

/** The higher of each. */
export function mergeRates(a: Rates, b: Rates): Rates {
  const merged = new Map(a);
  for (const [id, rate] of b) if (rate > (merged.get(id) ?? -1n)) merged.set(id, rate);
  return merged;
}
