import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SpendingLog, type LoggedSpend } from '../../../src/control/policy/spending-log.js';
import { WaitingLine } from '../../../src/control/worker/waiting-lines.js';

const ALL = '';
const amount = fc.bigInt({ min: 1n, max: 10n ** 48n });

describe('what counts in a window', () => {
  it('forgets what is too old for the longest window, and stays exact in all', () => {
    const log = new SpendingLog(3_000);
    for (let second = 0; second < 5_000; second += 1) {
      const now = second * 1_000;
      log.answer(log.begin(ALL, 1n), now);
      // The shorter one is looked at seldom: what it stands at is forgotten in between.
      const lengths = second % 1_700 === 0 ? [1_000, 2_000, 3_000] : [2_000, 3_000];
      for (const withinMs of lengths) {
        expect(log.sum(ALL, withinMs, now)).toBe(BigInt(Math.min(second + 1, withinMs / 1_000)));
      }
    }
    expect([...log.sums(2_000, 5_000_000)]).toEqual([[ALL, 1n]]);
    expect(() => log.sum(ALL, 3_001, 0)).toThrow(RangeError);
  });

  interface NaiveSpend {
    readonly bucket: string;
    readonly value: bigint;
    answeredAt?: number;
    released?: boolean;
  }

  it('agrees with a sum over every spend, in windows of several lengths that are looked at now and then', () => {
    const kinds = ['begin', 'answer', 'release', 'wait', 'look', 'look'] as const;
    const step = fc.record({
      ...{ kind: fc.constantFrom(...kinds), id: fc.integer({ min: 0, max: 6 }) },
      ...{ bucket: fc.constantFrom('x', 'y'), withinMs: fc.constantFrom(200, 700, 1_000), value: amount },
      ...{ most: fc.oneof(amount, fc.constantFrom(-1n, 0n)), ms: fc.integer({ min: 0, max: 700 }) },
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const log = new SpendingLog(1_000);
        const spends = new Map<number, { naive: NaiveSpend; logged: LoggedSpend }>();
        let now = 0;
        for (const { kind, id, bucket, withinMs, most, ms, value } of steps) {
          const known = spends.get(id);
          if (kind === 'wait') now += ms;
          if (kind === 'begin' && known === undefined) {
            spends.set(id, { naive: { bucket, value }, logged: log.begin(bucket, value) });
          }
          if (kind === 'answer' && known !== undefined) {
            known.naive.answeredAt ??= now;
            log.answer(known.logged, now);
          }
          if (kind === 'release' && known !== undefined) {
            known.naive.released = true;
            log.release(known.logged);
          }
          if (kind !== 'look') continue;
          const all = [...spends.values()].map(({ naive }) => naive);
          const sumAt = (time: number): bigint =>
            all
              .filter((spend) => spend.bucket === bucket && spend.released !== true)
              .filter(({ answeredAt }) => answeredAt === undefined || answeredAt + withinMs > time)
              .reduce((sum, spend) => sum + spend.value, 0n);
          const ends = all.map(({ answeredAt = -Infinity }) => answeredAt + withinMs).filter((end) => end > now);
          const times = [now, ...ends].sort((one, other) => one - other);
          expect(log.sum(bucket, withinMs, now)).toBe(sumAt(now));
          expect(log.freeAt(bucket, withinMs, most, now)).toBe(times.find((time) => sumAt(time) <= most));
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

it('a line of payouts that wait agrees with a sum over all who stand before, as they come, leave and take more', () => {
  const id = fc.integer({ min: 0, max: 15 }).map(String);
  const step = fc.record({ kind: fc.constantFrom('stand', 'stand', 'leave'), id, value: amount });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const [line, naive] = [new WaitingLine('rule', ''), new Map<string, bigint>()];
      for (const { kind, id: payoutId, value } of steps) {
        if (kind === 'leave') {
          line.leave(payoutId);
          naive.delete(payoutId);
        } else {
          line.stand(payoutId, value);
          naive.set(payoutId, value);
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
    { numRuns: 500 },
  );
});

it('a line stays right, and small, where thousands come and leave', () => {
  const line = new WaitingLine('rule', '');
  for (let number = 0; number < 5_000; number += 1) {
    line.stand(`p${number}`, BigInt(number));
    if (number >= 100 && number !== 200) line.leave(`p${number - 100}`);
  }
  expect([line.ahead('p100'), line.size]).toEqual([0n, 101]);
});
