import { worthInUnits } from '../../decimal.js';

/** A millionth of a dollar in units of 10⁻³⁶. */
const MICRO = 10n ** 30n;

/** Whole millionths of a dollar, from units of 10⁻³⁶: never less than it is. */
export function roundUpToMicros(units: bigint): bigint {
  return (units + MICRO - 1n) / MICRO;
}

/** What an amount is worth at a rate in dollars, in whole millionths of a dollar, rounded up. */
export function worthInMicros(amount: string, rate: string): bigint {
  return roundUpToMicros(worthInUnits(amount, rate));
}

/** Millionths of a dollar for people, with cents or as exact as they are: `5000.00`, `0.000001`. */
export function formatMicros(micros: bigint): string {
  const digits = micros.toString().padStart(7, '0');
  const places = digits.slice(-6).replace(/0{1,4}$/, '');
  return `${digits.slice(0, -6)}.${places}`;
}
