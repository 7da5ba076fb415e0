import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SpendingLog, type LoggedSpend } from '../../../src/control/policy/spending-log.js';

const DAY_MS = 86_400_000;
const ALL = '';

describe('what counts in a window', () => {
  it('counts from the begin, and until so long after the answer', () => {
    const log = new SpendingLog(DAY_MS);
    const spend = log.begin(ALL, 60n);
    expect(log.sum(ALL, DAY_MS, 5 * DAY_MS)).toBe(60n);
    log.answer(spend, 5 * DAY_MS);
    expect(log.sum(ALL, DAY_MS, 6 * DAY_MS - 1)).toBe(60n);
    expect(log.sum(ALL, DAY_MS, 6 * DAY_MS)).toBe(0n);
  });

  it('counts nothing of what was proved not to have paid, before and after its answer', () => {
    const log = new SpendingLog(DAY_MS);
    const [a, b] = [log.begin(ALL, 10n), log.begin(ALL, 10n), log.begin(ALL, 10n)];
    log.answer(b, 1);
    for (const spend of [a, b]) log.release(spend);
    expect(log.sum(ALL, DAY_MS, 2)).toBe(10n);
    log.release(b);
    expect(log.sum(ALL, DAY_MS, 2)).toBe(10n);
  });

  it('takes nothing off a window that the spend is too old for already', () => {
    const log = new SpendingLog(DAY_MS);
    const spend = log.begin(ALL, 10n);
    log.answer(spend, 0);
    expect(log.sum(ALL, 1_000, 1_000)).toBe(0n);
    log.release(spend);
    expect([1_000, DAY_MS].map((withinMs) => log.sum(ALL, withinMs, 1_000))).toEqual([0n, 0n]);
  });

  it('takes the first answer for its time, however often it is told', () => {
    const log = new SpendingLog(DAY_MS);
    const spend = log.begin(ALL, 10n);
    for (let time = 0; time < 3; time += 1) log.answer(spend, time);
    expect(log.sum(ALL, DAY_MS, DAY_MS - 1)).toBe(10n);
    expect(log.sum(ALL, DAY_MS, DAY_MS)).toBe(0n);
  });

  it('says when there is room, and that it depends on an answer', () => {
    const log = new SpendingLog(1_000);
    const spends = [100, 200, 300].map((at) => {
      const spend = log.begin(ALL, 10n);
      log.answer(spend, at);
      return spend;
    });
    log.begin(ALL, 10n);
    expect(log.freeAt(ALL, 1_000, 40n, 400)).toBe(400);
    expect(log.freeAt(ALL, 1_000, 25n, 400)).toBe(1_200);
    expect(log.freeAt(ALL, 1_000, 9n, 400)).toBeUndefined();
    if (spends[1] !== undefined) log.release(spends[1]);
    expect(log.freeAt(ALL, 1_000, 20n, 400)).toBe(1_100);
    expect(log.freeAt('another', 1_000, 0n, 400)).toBe(400);
  });
});

interface NaiveSpend {
  readonly bucket: string;
  readonly value: bigint;
  answeredAt?: number;
  released?: boolean;
}

/** What a log answers, from a list of everything that was ever spent. */
class NaiveLog {
  readonly spends = new Map<number, NaiveSpend>();

  sum(bucket: string, withinMs: number, now: number): bigint {
    return [...this.spends.values()]
      .filter((spend) => spend.bucket === bucket && spend.released !== true)
      .filter(({ answeredAt }) => answeredAt === undefined || answeredAt + withinMs > now)
      .reduce((sum, spend) => sum + spend.value, 0n);
  }

  freeAt(bucket: string, withinMs: number, most: bigint, now: number): number | undefined {
    const ends = [...this.spends.values()].map(({ answeredAt = -Infinity }) => answeredAt + withinMs);
    const times = [now, ...ends.filter((end) => end > now)].sort((one, other) => one - other);
    return times.find((time) => this.sum(bucket, withinMs, time) <= most);
  }
}

it('agrees with a sum over every spend, in windows of several lengths that are looked at now and then', () => {
  const amount = fc.bigInt({ min: 1n, max: 10n ** 48n });
  const step = fc.record({
    kind: fc.constantFrom('begin', 'answer', 'release', 'wait', 'look', 'look'),
    id: fc.integer({ min: 0, max: 6 }),
    bucket: fc.constantFrom('x', 'y'),
    withinMs: fc.constantFrom(200, 700, 1_000),
    value: amount,
    most: fc.oneof(amount, fc.constantFrom(-1n, 0n)),
    ms: fc.integer({ min: 0, max: 700 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const [log, naive] = [new SpendingLog(1_000), new NaiveLog()];
      let now = 0;
      const spends = new Map<number, LoggedSpend>();
      for (const { kind, id, bucket, withinMs, most, ms, value } of steps) {
        const [known, spend] = [naive.spends.get(id), spends.get(id)];
        if (kind === 'wait') now += ms;
        if (kind === 'begin' && known === undefined) {
          naive.spends.set(id, { bucket, value });
          spends.set(id, log.begin(bucket, value));
        }
        if (kind === 'answer' && known !== undefined && spend !== undefined) {
          known.answeredAt ??= now;
          log.answer(spend, now);
        }
        if (kind === 'release' && known !== undefined && spend !== undefined) {
          known.released = true;
          log.release(spend);
        }
        if (kind !== 'look') continue;
        expect(log.sum(bucket, withinMs, now)).toBe(naive.sum(bucket, withinMs, now));
        expect(log.freeAt(bucket, withinMs, most, now)).toBe(naive.freeAt(bucket, withinMs, most, now));
      }
    }),
    { numRuns: 3_000 },
  );
});

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
