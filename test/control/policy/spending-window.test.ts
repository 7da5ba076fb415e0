import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SpendingWindow } from '../../../src/control/policy/spending-window.js';

const DAY_MS = 86_400_000;
const ALL = '';

describe('what counts in a window', () => {
  it('counts from the begin, and until so long after the answer', () => {
    const window = new SpendingWindow(DAY_MS);
    window.begin('a', ALL, 60n);
    expect(window.sum(ALL, 5 * DAY_MS)).toBe(60n);
    window.answer('a', 5 * DAY_MS);
    expect(window.sum(ALL, 6 * DAY_MS - 1)).toBe(60n);
    expect(window.sum(ALL, 6 * DAY_MS)).toBe(0n);
  });

  it('counts nothing of what was proved not to have paid, before and after its answer', () => {
    const window = new SpendingWindow(DAY_MS);
    for (const id of ['a', 'b', 'c']) window.begin(id, ALL, 10n);
    window.answer('b', 1);
    for (const id of ['a', 'b', 'nobody']) window.release(id);
    expect(window.sum(ALL, 2)).toBe(10n);
    window.release('b');
    expect(window.sum(ALL, 2)).toBe(10n);
  });

  it('counts an attempt once, however often it is told', () => {
    const window = new SpendingWindow(DAY_MS);
    for (let time = 0; time < 3; time += 1) {
      window.begin('a', ALL, 10n);
      window.answer('a', time);
    }
    expect(window.sum(ALL, DAY_MS - 1)).toBe(10n);
    expect(window.sum(ALL, DAY_MS)).toBe(0n);
  });

  it('says when there is room, and that it depends on an answer', () => {
    const window = new SpendingWindow(1_000);
    for (const [id, at] of [
      ['a', 100],
      ['b', 200],
      ['c', 300],
    ] as const) {
      window.begin(id, ALL, 10n);
      window.answer(id, at);
    }
    window.begin('d', ALL, 10n);
    expect(window.freeAt(ALL, 40n, 400)).toBe(400);
    expect(window.freeAt(ALL, 25n, 400)).toBe(1_200);
    expect(window.freeAt(ALL, 9n, 400)).toBeUndefined();
    window.release('b');
    expect(window.freeAt(ALL, 20n, 400)).toBe(1_100);
    expect(window.freeAt('another', 0n, 400)).toBe(400);
  });
});

it('agrees with a sum over every spend', () => {
  const step = fc.record({
    kind: fc.constantFrom('begin', 'answer', 'release', 'wait'),
    id: fc.integer({ min: 0, max: 12 }),
    bucket: fc.constantFrom('x', 'y'),
    value: fc.bigInt({ min: 1n, max: 10n ** 48n }),
    ms: fc.integer({ min: 0, max: 700 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const window = new SpendingWindow(1_000);
      const naive = new Map<string, { bucket: string; value: bigint; answeredAt?: number; released?: boolean }>();
      let now = 0;
      for (const { kind, id, bucket, value, ms } of steps) {
        const key = String(id);
        const known = naive.get(key);
        if (kind === 'wait') now += ms;
        if (kind === 'begin' && known === undefined) {
          naive.set(key, { bucket, value });
          window.begin(key, bucket, value);
        }
        if (kind === 'answer') {
          if (known !== undefined) known.answeredAt ??= now;
          window.answer(key, now);
        }
        if (kind === 'release') {
          if (known !== undefined) known.released = true;
          window.release(key);
        }
        for (const name of ['x', 'y']) {
          const expected = [...naive.values()]
            .filter((spend) => spend.bucket === name && spend.released !== true)
            .filter(({ answeredAt }) => answeredAt === undefined || answeredAt + 1_000 > now)
            .reduce((sum, spend) => sum + spend.value, 0n);
          expect(window.sum(name, now)).toBe(expected);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});
