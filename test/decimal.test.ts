import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fromUnits, toUnits, worthInUnits } from '../src/base/decimal.js';

describe('exact decimals', () => {
  it('convert to units and back without loss', () => {
    const part = (max: number): fc.Arbitrary<bigint> => fc.bigInt({ min: 0n, max: 10n ** BigInt(max) - 1n });
    fc.assert(
      fc.property(part(30), part(18), (whole, places) => {
        const decimal = `${whole}.${places.toString().padStart(18, '0')}`;
        expect(fromUnits(toUnits(decimal))).toBe(decimal.replace(/\.?0+$/, ''));
      }),
    );
  });

  it.each([
    ['0.1', '0.2', '0.02'],
    ['0.000000000000000001', '0.000000000000000001', '0.000000000000000000000000000000000001'],
    ['123456789012345678901234567890', '64250.5', '7932160422437716042243771604216445'],
    ['3', '1', '3'],
  ])('%s times %s is %s', (amount, rate, worth) => {
    expect(fromUnits(worthInUnits(amount, rate))).toBe(worth);
  });
});
