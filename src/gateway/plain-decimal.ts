import { isLosslessNumber } from 'lossless-json';

const NUMBER_PATTERN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;

/** Far beyond every amount. A response can contain megabytes of digits, or demand them by an exponent of a few bytes. */
const MAX_LENGTH = 400;
const MAX_EXPONENT = 400;

/**
 * Parses a number of the gateway, which may send numbers or numeric strings, as its exact plain decimal digits:
 * `1e-8` becomes `0.00000001`, `12.50` becomes `12.5`. Never through a float, which would change long amounts.
 * @param value - a string, or a number as lossless-json gives it
 * @returns undefined if it is not a number
 */
export function parseDecimal(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return toPlainDecimal(value.value);
  return typeof value === 'string' ? toPlainDecimal(value) : undefined;
}

function toPlainDecimal(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, sign, whole, fraction = '', exponentText = '0'] = NUMBER_PATTERN.exec(text) ?? [];
  const exponent = Number(exponentText);
  if (sign === undefined || whole === undefined || Math.abs(exponent) > MAX_EXPONENT) return undefined;

  const digits = '0'.repeat(Math.max(0, -exponent)) + whole + fraction + '0'.repeat(Math.max(0, exponent));
  // The zeros on both sides leave room for the point to move; surplus zeros are cut off below.
  const point = Math.max(0, -exponent) + whole.length + exponent;
  const wholeDigits = digits.slice(0, point).replace(/^0+/, '') || '0';
  const fractionDigits = digits.slice(point).replace(/0+$/, '');
  const plain = fractionDigits === '' ? wholeDigits : `${wholeDigits}.${fractionDigits}`;
  return sign === '-' && plain !== '0' ? `-${plain}` : plain;
}
