import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'lossless-json';
import { parseDecimal } from '../../src/gateway/responses.js';

describe('parseDecimal', () => {
  it.each([
    ['0', '0'],
    ['-0.0', '0'],
    ['1e-8', '0.00000001'],
    ['1.5E-7', '0.00000015'],
    ['1e+3', '1000'],
    ['12.340e1', '123.4'],
    ['0.00012e3', '0.12'],
    ['0.123456789012345678', '0.123456789012345678'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['-12.50', '-12.5'],
    ['007', '7'],
  ])('%s is %s, as a text and as a JSON number', (text, expected) => {
    expect(parseDecimal(text)).toBe(expected);
    if (text !== '007') expect(parseDecimal(parse(text))).toBe(expected);
  });

  it.each([[''], [' 1'], ['1 '], ['.5'], ['5.'], ['0x10'], ['1e'], ['1e401'], ['1e99999'], ['NaN'], ['1'.repeat(401)]])(
    'refuses %.20s',
    (text) => {
      expect(parseDecimal(text)).toBeUndefined();
    },
  );

  it('refuses values that are neither text nor number', () => {
    for (const value of [undefined, null, true, 1, [], {}, ['1']]) expect(parseDecimal(value)).toBeUndefined();
  });

  it('moves the point without losing a digit', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 30n }), fc.integer({ min: -40, max: 40 }), (digits, exponent) => {
        const plain = parseDecimal(`${digits}e${exponent}`) ?? '';
        expect(plain).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);
        const [whole = '', fraction = ''] = plain.split('.');
        expect(BigInt(whole + fraction.padEnd(40, '0'))).toBe(digits * 10n ** BigInt(40 + exponent));
      }),
    );
  });
});
