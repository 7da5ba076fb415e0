import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { silentLogger } from '../../src/base/logger.js';
import { DEFAULT_USD, parsePolicy, type Policy } from '../../src/control/policy/policy.js';
import { type LoggedSpend, SpendingLog } from '../../src/control/policy/spending-log.js';
import { UsdRates } from '../../src/control/policy/usd-rates.js';
import { formatMicros } from '../../src/control/policy/values.js';
import { keepRates } from '../../src/control/worker/account-policy.js';
import { WaitingLine } from '../../src/control/worker/waiting-lines.js';
import type { RateAnchor } from '../../src/ledger/control-record.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { MINUTE_MS } from './support/signed.js';
import { TestPolicy } from './support/policy-rig.js';
import { toCurrencyList } from '../../src/gateway/parse-currencies.js';

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

const DAY = 24 * 60;
const STARTED_AT = Date.UTC(2030, 0, 1);

let rates: UsdRates;
/** As the journal has them. */
let anchors: Map<number, RateAnchor>;
const open = () => {
  rates = new UsdRates({ maxAgeMs: 15 * MINUTE_MS, maxMovePercent: 25, pinned: new Map([[6, '1']]) });
};
beforeEach(() => {
  anchors = new Map();
  open();
});

const worth = (paymentId: number, amount: string, minute: number) => {
  const found = rates.worthOf(paymentId, amount, minute * MINUTE_MS);
  return found.kind === 'known' ? formatMicros(found.micros) : found.reason;
};
/** The gateway names a rate; the journal keeps what moves. */
const update = (rate: string, minute: number, wallMinute = minute) => {
  const wallNow = STARTED_AT + wallMinute * MINUTE_MS;
  const moved = rates.update([[10, rate]], anchors, { now: minute * MINUTE_MS, wallNow });
  for (const [currency, anchor] of moved) anchors.set(currency, { rate: anchor, at: wallNow });
};
const confirm = (rate: string) => {
  for (let times = 0; times < 2; times += 1) update(rate, 0);
};

describe('what a currency is worth', () => {
  it('is what the policy pins, or what the gateway said until that is too old, never rounded down', () => {
    rates.update([[6, '0.01']], anchors, { now: 0, wallNow: STARTED_AT });
    expect(worth(6, '12.5', 99)).toBe('12.50');
    expect(worth(10, '1', 0)).toBe('the gateway has named no rate of currency 10');
    confirm('60000');
    expect(worth(10, '0.000000001', 15)).toBe('0.00006');
    expect(worth(10, '0.00000000000000001', 15)).toBe('0.000001');
    expect(worth(10, '1', 16)).toBe('the rate of currency 10 is 16 min old');
  });

  it.each([
    ['75000', /^75000.00$/],
    ['45000', /^45000.00$/],
    ['75000.01', /75000.01, is more than 25% from 60000, and follows by that much a day/],
    ['44999.99', /44999.99, is more than 25% from 60000/],
  ])('after 60000 and then %s is %s', (rate, expected) => {
    confirm('60000');
    update(rate, 5);
    expect(worth(10, '1', 5)).toMatch(expected);
  });

  it('counts again once it has stood where it jumped to, near what it was', () => {
    confirm('60000');
    update('74000', 5);
    for (const minute of [10, 15, 20, 25]) update('46000', minute);
    expect(worth(10, '1', 24)).toMatch(/moved by more than 25% 14 min ago/);
    expect(worth(10, '1', 25)).toBe('46000.00');
  });

  it('counts for the first time once the gateway names it again, however long that takes', () => {
    update('60000', 0);
    expect(worth(10, '1', 0)).toBe('the rate of currency 10 was read once, and counts once it is read again');
    update('6', 5);
    expect([worth(10, '1', 5), rates.isUnconfirmed]).toEqual([expect.stringContaining('read once'), true]);
    update('6.1', 6);
    expect([rates.isUnconfirmed, anchors.get(10)]).toEqual([false, { rate: '6.1', at: STARTED_AT + 6 * MINUTE_MS }]);
  });

  it('counts after a start near the one of the journal, and not at all elsewhere, however often it is named', () => {
    anchors.set(10, { rate: '60000', at: STARTED_AT - 5 * MINUTE_MS });
    update('61000', 0);
    expect(worth(10, '1', 0)).toBe('61000.00');
    open();
    for (let minute = 0; minute < DAY - 5; minute += 5) {
      update('0.01', minute);
      expect(worth(10, '1', minute)).toMatch(/^the rate of currency 10, 0.01, is more than 25% from 60000/);
    }
  });
});

describe('a rate that walks', () => {
  it.each([
    ['30', '45'],
    ['90', '75'],
  ])('far, to %s, is followed by one move a day, and counts once it is reached', (rate, first) => {
    confirm('60');
    update('60', 1);
    // By the clock of the process, whatever the wall clock says meanwhile.
    for (let minute = 5; minute < DAY; minute += 60) update(rate, minute, minute + 400 * DAY);
    expect(anchors.get(10)?.rate).toBe('60');
    update(rate, DAY);
    expect(anchors.get(10)).toEqual({ rate: first, at: STARTED_AT + DAY * MINUTE_MS });
    for (const minutes of [0, 15]) update(rate, 2 * DAY + minutes);
    expect(worth(10, '1', 2 * DAY + 15)).toBe(`${rate}.00`);
  });

  it('after a long time without a worker may move once; one that stands keeps an anchor a day old at most', () => {
    anchors.set(10, { rate: '60', at: STARTED_AT - 90 * DAY * MINUTE_MS });
    update('600', 0);
    expect([anchors.get(10)?.rate, worth(10, '1', 0)]).toEqual(['75', expect.stringContaining('from 75')]);
    for (let minute = 60; minute <= 3 * DAY; minute += 60) update('75', minute);
    expect(anchors.get(10)?.at).toBe(STARTED_AT + 3 * DAY * MINUTE_MS);
  });
});

describe('a worker that keeps rates', () => {
  function policyOf(usd: object, cap: object = { usd: '10' }): Policy {
    const rules = [{ name: 'a', when: { paymentId: ['10'] }, cap, over: 'refuse' }];
    return parsePolicy({ version: '1', platformId: '1', default: 'send', usd, rules });
  }

  /** Lets one keep rates for 20 minutes. @param name - what the gateway answers in a second, if it does */
  async function keep(policy: Policy, name: (second: number) => string | undefined, journal = new MemoryJournal()) {
    const end = new AbortController();
    const asked: number[] = [];
    let now = 0;
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
      if (now > 20 * MINUTE_MS) end.abort();
      return Promise.resolve();
    };
    const currencies = async () => {
      asked.push(Math.round(now / 1_000));
      const rate = name(now / 1_000);
      if (rate === undefined) throw new Error('no answer');
      return Promise.resolve([{ id: 10, name: 'BTC', rate_usd: rate }]);
    };
    const gateway = { readCurrencies: async () => toCurrencyList(await currencies()) };
    const clock = { now: () => now, wallNow: () => now, sleep };
    const kept = new UsdRates(policy.usd ?? DEFAULT_USD);
    const runtime = { current: new TestPolicy(policy), journal, gateway, clock, logger: silentLogger };
    await keepRates(runtime, kept, end.signal);
    return { asked, kind: kept.worthOf(10, '1', now).kind };
  }

  const named = () => '60000';
  const failing = (at: number) => (at > 240 && at < 324 ? undefined : '60000');
  it.each<[string, Policy, Parameters<typeof keep>[1], readonly number[]]>([
    ['twice at first, then every five minutes', policyOf({}), named, [0, 10, 310, 610, 910]],
    ['more often where old comes sooner', policyOf({ maxAge: '8m' }), named, [0, 10, 250, 490, 730, 970]],
    ['soon again where no answer comes', policyOf({}), failing, [0, 10, 310, 320, 330, 630, 930]],
    ['never where no rule is in dollars', policyOf({}, { amount: '1' }), named, []],
  ])('asks for them %s', async (_, policy, name, seconds) => {
    expect((await keep(policy, name)).asked).toEqual(seconds);
  });

  it('keeps the first rate in the journal, where the next process finds it', async () => {
    const journal = new MemoryJournal();
    expect((await keep(policyOf({}), named, journal)).kind).toBe('known');
    expect(journal.lines).toEqual([{ rates: { at: 10_000, usd: { 10: '60000' } } }]);
    const restarted = new MemoryJournal('j-mine', journal.lines);
    expect((await keep(policyOf({}), () => '61000', restarted)).kind).toBe('known');
    expect((await keep(policyOf({}), () => '1', restarted)).kind).toBe('unknown');
  });
});
