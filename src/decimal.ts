/** Exact sums: amounts and rates are decimal strings with at most 18 places, their products BigInt units of 36 places. */

const PLACES = 18;
const PRODUCT_PLACES = 2 * PLACES;

/** A decimal string as whole units of 10⁻³⁶. */
export function toUnits(decimal: string): bigint {
  return scale(decimal, PRODUCT_PLACES);
}

/** What an amount is worth at a rate, in whole units of 10⁻³⁶. */
export function worthInUnits(amount: string, rate: string): bigint {
  return scale(amount, PLACES) * scale(rate, PLACES);
}

/** Whole units of 10⁻³⁶ as a decimal string without trailing zeros. */
export function fromUnits(units: bigint): string {
  if (units < 0n) return `-${fromUnits(-units)}`;
  const digits = units.toString().padStart(PRODUCT_PLACES + 1, '0');
  const places = digits.slice(-PRODUCT_PLACES).replace(/0+$/, '');
  const whole = digits.slice(0, -PRODUCT_PLACES);
  return places === '' ? whole : `${whole}.${places}`;
}

function scale(decimal: string, places: number): bigint {
  if (decimal.startsWith('-')) return -scale(decimal.slice(1), places);
  const [whole = '0', fraction = ''] = decimal.split('.');
  return BigInt(whole + fraction.padEnd(places, '0'));
}
