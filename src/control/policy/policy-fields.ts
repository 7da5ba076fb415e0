import { z } from 'zod';
import { toUnits } from '../../decimal.js';
import { roundUpToMicros } from './usd.js';

/** The fields of a policy file. Every scalar is text (YAML's failsafe schema), so that no amount was ever a float. */

const MS_OF = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION_RULE = 'must be a duration such as "15m", "24h" or "7d", of at most 31 days';
const LONGEST_MS = 31 * MS_OF.d;

export const durationField = z
  .string({ error: DURATION_RULE })
  // Before the conversion, so that an error shows the text as given.
  .refine((text) => /^[1-9]\d{0,6}[smhd]$/.test(text) && toMs(text) <= LONGEST_MS, DURATION_RULE)
  .transform(toMs);

function toMs(text: string): number {
  return Number(text.slice(0, -1)) * MS_OF[text.slice(-1) as keyof typeof MS_OF];
}

const DECIMAL = /^(0|[1-9]\d{0,29})(\.\d{1,18})?$/;
const DECIMAL_RULE =
  'must be a decimal such as "2.5": up to 30 digits, then at most 18 decimal places, no sign, no exponent';

/** An amount of a currency, in whole units of 10⁻³⁶. */
export const amountLimitField = z.string({ error: DECIMAL_RULE }).regex(DECIMAL, DECIMAL_RULE).transform(toUnits);

const USD_RULE = 'must be US dollars such as "5000" or "0.5", with at most 6 decimal places';

/** US dollars, in whole millionths. */
export const usdField = z
  .string({ error: USD_RULE })
  .regex(/^(0|[1-9]\d{0,29})(\.\d{1,6})?$/, USD_RULE)
  .transform((text) => roundUpToMicros(toUnits(text)));

const COUNT_RULE = 'must be a whole number of sends such as "500"';
export const countField = z
  .string({ error: COUNT_RULE })
  .regex(/^(0|[1-9]\d{0,8})$/, COUNT_RULE)
  .transform(BigInt);

const PERCENT_RULE = 'must be a share such as "25%", from 1% to 1000%';

export const percentField = z
  .string({ error: PERCENT_RULE })
  .regex(/^([1-9]\d{0,2}|1000)%$/, PERCENT_RULE)
  .transform((text) => Number(text.slice(0, -1)));

const ID_RULE = 'must be the id of a currency such as "6"';
export const paymentIdField = z
  .string({ error: ID_RULE })
  .regex(/^[1-9]\d{0,14}$/, ID_RULE)
  .transform(Number);
