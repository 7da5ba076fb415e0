import { isLosslessNumber } from 'lossless-json';

const NUMBER_PATTERN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/;

/** Far beyond every amount. A response can contain megabytes of digits, or demand them by a short exponent. */
const MAX_LENGTH = 400;
const MAX_EXPONENT = 400;

/**
 * The exact plain decimal digits of a number or numeric string: `1e-8` becomes `0.00000001`, `12.50` becomes `12.5`. A
 * float would change long amounts.
 * @param value - a string, or a number from lossless-json
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
  // Zeros on both sides leave room to move the point; surplus zeros are cut off below.
  const point = Math.max(0, -exponent) + whole.length + exponent;
  const wholeDigits = digits.slice(0, point).replace(/^0+/, '') || '0';
  const fractionDigits = digits.slice(point).replace(/0+$/, '');
  const plain = fractionDigits === '' ? wholeDigits : `${wholeDigits}.${fractionDigits}`;
  return sign === '-' && plain !== '0' ? `-${plain}` : plain;
}
