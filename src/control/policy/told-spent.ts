import { toUnits } from '../../decimal.js';
import type { Cap } from './policy.js';
import { worthInMicros } from './usd.js';

/** A sum that a worker published in Redis. It is untrusted. */
const DECIMAL = /^\d{1,40}(\.\d{1,18})?$/;

/**
 * @param text - a decimal string: dollars, an amount, or sends
 * @returns the sum in the unit of its cap; undefined if it is invalid
 */
export function parseToldSpent(unit: Cap['unit'], text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined;
  if (unit === 'usd') return worthInMicros(text, '1');
  if (unit === 'amount') return toUnits(text);
  return text.includes('.') ? undefined : BigInt(text);
}
