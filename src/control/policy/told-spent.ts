import { toUnits } from '../../decimal.js';
import type { Cap } from './policy.js';
import { worthInMicros } from './usd.js';

/** As a worker writes sums for people; anybody may have altered it since. */
const DECIMAL = /^\d{1,40}(\.\d{1,18})?$/;

/**
 * What a worker told to be spent in a window, back in the unit of its cap.
 * @param text - a decimal string: dollars, an amount, or sends
 * @returns undefined where that is no such sum
 */
export function parseToldSpent(unit: Cap['unit'], text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined;
  if (unit === 'usd') return worthInMicros(text, '1');
  if (unit === 'amount') return toUnits(text);
  return text.includes('.') ? undefined : BigInt(text);
}
