import { worthInUnits } from '../../base/decimal.js';

/** A millionth of a dollar in units of 10⁻³⁶. */
const MICRO = 10n ** 30n;

export function roundUpToMicros(units: bigint): bigint {
  return (units + MICRO - 1n) / MICRO;
}

/** Rounded up, so that no cap is passed. */
export function worthInMicros(amount: string, rate: string): bigint {
  return roundUpToMicros(worthInUnits(amount, rate));
}

/** For display, with cents or exact: `5000.00`, `0.000001`. */
export function formatMicros(micros: bigint): string {
  const digits = micros.toString().padStart(7, '0');
  const places = digits.slice(-6).replace(/0{1,4}$/, '');
  return `${digits.slice(0, -6)}.${places}`;
}
