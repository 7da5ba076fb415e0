import { isLosslessNumber } from 'lossless-json';
import { parseDecimal } from './plain-decimal.js';

/** Field types are undefined (docs/gateway-api.md#open-points), so numbers and numeric strings are accepted. */

/** A non-empty text. A number counts by its digits, because destination tags often come as numbers. */
export function parseText(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return value.value;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function parseWholeNumber(value: unknown): number | undefined {
  const number = Number(parseDecimal(value));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The plain value. Numbers that JavaScript cannot represent become strings of their exact digits. */
export function toPlainValue(value: unknown): unknown {
  if (isLosslessNumber(value)) return toPlainNumber(value.value);
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toPlainValue(item)]));
}

function toPlainNumber(text: string): number | string {
  const exact = parseDecimal(text);
  if (exact === undefined) return text;
  return parseDecimal(String(Number(text))) === exact ? Number(text) : exact;
}

/** One property, or none without a value, as `exactOptionalPropertyTypes` requires. */
export function present<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: Value };
}
