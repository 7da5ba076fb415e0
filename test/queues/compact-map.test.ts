import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CompactMap } from '../../src/queues/job-records.js';

it('holds what a Map holds, whatever the texts', () => {
  const entries = fc.array(fc.tuple(fc.string({ maxLength: 12 }), fc.constantFrom('a', 'b', 'c')), { maxLength: 60 });
  fc.assert(
    fc.property(entries, fc.array(fc.string({ maxLength: 12 })), (pairs, others) => {
      const [map, compact] = [new Map(pairs), new CompactMap<string>()];
      for (const [text, value] of pairs) compact.set(text, value);
      expect(compact.size).toBe(map.size);
      for (const text of [...map.keys(), ...others]) expect(compact.get(text)).toBe(map.get(text));
    }),
    { numRuns: 2_000 },
  );
});

it('distinguishes 30,000 texts that differ in a digit or two', () => {
  const compact = new CompactMap<string>();
  const names = Array.from({ length: 30_000 }, (_, index) => `invoice-${String(index).padStart(9, '0')}~0`);
  for (const [index, name] of names.entries()) compact.set(name, index % 2 === 0 ? 'even' : 'odd');
  expect(compact.size).toBe(names.length);
  expect(names.every((name, index) => compact.get(name) === (index % 2 === 0 ? 'even' : 'odd'))).toBe(true);
  expect(names.some((name) => compact.get(name.replace('~0', '~1')) !== undefined)).toBe(false);
});

it('takes 255 values', () => {
  const compact = new CompactMap<number>();
  for (let value = 0; value < 255; value += 1) compact.set(String(value), value);
  expect(compact.get('254')).toBe(254);
  expect(() => {
    compact.set('one more', 255);
  }).toThrow(RangeError);
});

it('distinguishes texts that share half of their hash', () => {
  // The first half is FNV-1a, of which these are known to collide.
  const compact = new CompactMap<string>();
  compact.set('costarring', 'a');
  compact.set('declinate', 'b');
  expect([compact.get('liquid'), compact.get('macallums'), compact.get('costarring')]).toEqual([
    undefined,
    undefined,
    'a',
  ]);
});
