import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { WaitingLine } from '../../../src/control/worker/waiting-lines.js';

it('agrees with a sum over all who stand before, as payouts come, leave and take more', () => {
  const step = fc.record({
    kind: fc.constantFrom('stand', 'stand', 'leave'),
    id: fc.integer({ min: 0, max: 15 }).map(String),
    value: fc.bigInt({ min: 0n, max: 10n ** 48n }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const [line, naive] = [new WaitingLine('rule', ''), new Map<string, bigint>()];
      for (const { kind, id, value } of steps) {
        if (kind === 'leave') {
          line.leave(id);
          naive.delete(id);
        } else {
          line.stand(id, value);
          naive.set(id, value);
        }
        let ahead = 0n;
        for (const [waiting, takes] of naive) {
          expect(line.ahead(waiting)).toBe(ahead);
          ahead += takes;
        }
        expect([line.total, line.ahead('a stranger'), line.size]).toEqual([ahead, ahead, naive.size]);
        expect([line.front, line.payoutIds()]).toEqual([[...naive.values()][0] ?? 0n, [...naive.keys()]]);
      }
    }),
    { numRuns: 1_000 },
  );
});

it('stays right, and small, where thousands come and leave', () => {
  const line = new WaitingLine('rule', '');
  for (let number = 0; number < 10_000; number += 1) {
    line.stand(`p${number}`, BigInt(number));
    if (number >= 100 && number !== 200) line.leave(`p${number - 100}`);
    if (number % 100 !== 0 || number < 200) continue;
    expect(line.ahead(`p${number - 10}`) + BigInt(11 * number - 55)).toBe(line.total);
  }
  expect(line.ahead('p100')).toBe(0n);
  expect(line.size).toBe(101);
});
