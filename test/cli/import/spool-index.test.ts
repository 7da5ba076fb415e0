import { expect, it } from '@jest/globals';
import { SpoolIndex } from '../../../src/cli/import/spool-index.js';

it('finds every payoutId again, and hardly any other', () => {
  const index = new SpoolIndex();
  const offset = (n: number): number => n * 200 + 5 * 2 ** 32;
  for (let n = 0; n < 50_000; n += 1) index.add(`invoice-${n}`, offset(n));
  let [found, others] = [0, 0];
  for (let n = 0; n < 50_000; n += 1) {
    if (index.find(`invoice-${n}`).includes(offset(n))) found += 1;
    others += index.find(`bonus-${n}`).length;
  }
  expect(found).toBe(50_000);
  expect(others).toBeLessThan(50);
});

it('gives every place of ids that share a hash', () => {
  const index = new SpoolIndex();
  index.add('same', 0);
  index.add('same', 7);
  expect(index.find('same').sort()).toEqual([0, 7]);
  expect(index.find('other')).toEqual([]);
});
