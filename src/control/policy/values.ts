import { z } from 'zod';
import { toUnits, worthInUnits } from '../../base/decimal.js';

/** The values in a policy. Every scalar is text (YAML's failsafe schema), so that no amount was ever a float. */

export function textField(rule: string, form: RegExp): z.ZodString {
  return z.string({ error: rule }).regex(form, rule);
}

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION_RULE = 'must be a duration such as "15m", "24h" or "7d", of at most 31 days';

export const durationField = z
  .string({ error: DURATION_RULE })
  // Before the conversion, so that an error shows the text as given.
  .refine((text) => /^[1-9]\d{0,6}[smhd]$/.test(text) && toMs(text) <= 31 * UNITS.d, DURATION_RULE)
  .transform(toMs);

function toMs(text: string): number {
  return Number(text.slice(0, -1)) * UNITS[text.slice(-1) as keyof typeof UNITS];
}

/** An exact duration: `7 d`, but `24 h`; `90 min`. @param ms - whole seconds */
export function formatSpan(ms: number): string {
  if (ms > UNITS.d && ms % UNITS.d === 0) return `${ms / UNITS.d} d`;
  if (ms % UNITS.h === 0) return `${ms / UNITS.h} h`;
  return ms % UNITS.m === 0 ? `${ms / UNITS.m} min` : `${ms / UNITS.s} s`;
}

/** Units of 10⁻³⁶ of a currency. */
export const amountLimitField = textField(
  'must be a decimal such as "2.5": up to 30 digits, then at most 18 decimal places, no sign, no exponent',
  /^(0|[1-9]\d{0,29})(\.\d{1,18})?$/,
).transform(toUnits);

export const usdField = textField(
  'must be US dollars such as "5000" or "0.5", with at most 6 decimal places',
  /^(0|[1-9]\d{0,29})(\.\d{1,6})?$/,
).transform((text) => roundUpToMicros(toUnits(text)));

export const paymentIdField = textField('must be the id of a currency such as "6"', /^[1-9]\d{0,14}$/).transform(
  Number,
);

const MICRO = 10n ** 30n;

function roundUpToMicros(units: bigint): bigint {
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
