/**
 * Exact sums. Amounts and rates are decimal strings with at most 18 places; their products are BigInt units of 10⁻³⁶.
 */

const PLACES = 18;
const PRODUCT_PLACES = 2 * PLACES;

export function toUnits(decimal: string): bigint {
  return scale(decimal, PRODUCT_PLACES);
}

/** The value of an amount at a rate, in units of 10⁻³⁶. */
export function worthInUnits(amount: string, rate: string): bigint {
  return scale(amount, PLACES) * scale(rate, PLACES);
}

/** Units of 10⁻³⁶ as a decimal string without trailing zeros. */
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
