import { expect, it } from '@jest/globals';
import { compareWithModel } from './decide-model.js';

const RUNS = 100_000;

it(`decides like a model that keeps no windows, on ${RUNS} policies and histories`, () => {
  const kinds = compareWithModel(RUNS);
  expect([...kinds.values()].reduce((sum, count) => sum + count, 0)).toBe(RUNS);
  for (const kind of ['send', 'wait', 'approve', 'refuse']) expect(kinds.get(kind) ?? 0).toBeGreaterThan(RUNS / 50);
}, 600_000);
