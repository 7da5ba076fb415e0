import { describe, expect, it } from '@jest/globals';
import { compareBalance } from '../../src/ledger/reads/balance-cover.js';
import { estimateEnd, MINUTE_MS, type MinuteStatistics, parseStatistics } from '../../src/ledger/reads/statistics.js';

const NOW = Date.parse('2030-01-01T12:00:30Z');
const WORKING = { queued: 600, paused: false, objections: [], sender: { owner: 'one', epoch: 1, heartbeat: 1 } };

describe('the expected end of the backlog', () => {
  const PACE = Array.from({ length: 20 }, () => 1_100);
  const estimate = (pace: number[], stats = {}, stoppedBy?: string): ReturnType<typeof estimateEnd> =>
    estimateEnd({ minutes: [], pace }, { ...WORKING, ...stats }, NOW, stoppedBy);

  it.each([
    ['the last gaps between writes', PACE, 1_100],
    ['a standstill in the middle, which is left out', PACE.with(10, 3_600_000), 1_100],
    ['slow responses where they are many', PACE.map((gapMs, at) => (at % 2 === 0 ? 5_000 : gapMs)), 3_050],
  ])('comes from %s', (_, pace, gapMs) => {
    expect(estimate(pace)).toMatchObject({ endsAt: NOW + 600 * gapMs, why: undefined });
    expect(estimate(pace, { queued: 0, paused: true })).toMatchObject({ endsAt: NOW, why: undefined });
  });

  it.each([
    ['the account is paused', PACE, { paused: true }, undefined],
    ['a send journal contradicts the ledger', PACE, { paused: true, objections: [{}] }, undefined],
    ['no worker sends', PACE, { sender: null }, undefined],
    ['no two payouts were sent one right after the other yet', [], {}, undefined],
    ['Gateway down', PACE, {}, 'Gateway down'],
  ])('is not known where it is stopped: %s', (why, pace, stats, stoppedBy) => {
    expect(estimate(pace, stats, stoppedBy)).toMatchObject({ endsAt: undefined, why });
  });

  it('has the rate of the last 10 minutes, from the first of them that sent', () => {
    /** How many minutes ago, and what was sent; 0 is the present one, of which half is over. */
    const rate = (...given: [ago: number, sent: number][]): number => {
      const none = { smallestGapMs: undefined, largestGapMs: undefined, completed: 0, rejected: 0, unknown: 0 };
      const minutes = given.map(([ago, sent]): MinuteStatistics => {
        return { at: Math.floor(NOW / MINUTE_MS - ago) * MINUTE_MS, sent, backlog: 600, ...none };
      });
      return estimateEnd({ minutes, pace: [] }, { ...WORKING }, NOW).ratePerMinute;
    };
    expect(rate([30, 60], [4, 40], [3, 50], [0, 27])).toBe(117 / 4.5);
    expect(rate([0, 5])).toBe(5);
    expect(rate([300, 50])).toBe(0);
    expect(rate()).toBe(0);
  });
});

it('stored statistics of another day say nothing of today, and leave out minutes older than 24 hours', () => {
  const day = Math.floor(NOW / 86_400_000);
  const sum = { paymentId: 6, count: 1, amount: '1' };
  const old = JSON.stringify([
    [NOW / MINUTE_MS - 24.5 * 60, 1, null, null, 0, 0, 0, 0],
    [Math.floor(NOW / MINUTE_MS) - 60, 2, 1_010, 2_020, 0, 0, 0, 7],
  ]);
  const stored = { today: JSON.stringify({ day, sent: [sum] }), 'hour:1': old, position: `"${NOW}-3"` };
  const read = parseStatistics(stored, NOW);
  expect(read.today).toEqual({ sent: [sum], completed: [], rejected: [], failed: [] });
  expect(read.asOf).toBe(NOW);
  expect(read.minutes).toMatchObject([{ sent: 2, smallestGapMs: 1_010, largestGapMs: 2_020, backlog: 7 }]);
  expect(parseStatistics(stored, NOW + 86_400_000).today.sent).toEqual([]);
});

it.each(['5', '{}', '[1]', '"x"', '[[1]]', '{"queued":5}', `{"day":${Math.floor(NOW / 86_400_000)},"sent":5}`, '{'])(
  'stored statistics that someone altered say nothing: %s',
  (text) => {
    const stored = { position: text, sums: text, today: text, 'hour:1': text };
    const read = parseStatistics({ ...stored, lastSendAt: '[1]', pace: '["x"]' }, NOW);
    expect(read).toEqual(parseStatistics({}, NOW));
  },
);

describe('a balance', () => {
  const currencies = [
    { paymentId: 1, name: 'BTC', usdRate: '64250.5' },
    { paymentId: 6, name: 'USDT (TRC-20)', usdRate: '1' },
    { paymentId: 7, name: 'USDT (ERC-20)', usdRate: '1' },
    { paymentId: 9, name: 'TRX', usdRate: undefined },
  ];
  const sum = (paymentId: number, amount: string) => ({ paymentId, symbol: undefined, count: 1, amount });
  const QUEUED = [sum(1, '0.002'), sum(6, '100'), sum(7, '50.000000000000000001')];
  const compare = (amount: string, of: object, queued = QUEUED) =>
    compareBalance({ balance: [{ paymentId: undefined, symbol: undefined, amount, ...of }], currencies }, queued);

  it.each([
    ['of a currency', '0.001', { paymentId: 1 }, 'BTC', '0.002', false],
    ['of a currency, exactly enough', '0.002', { paymentId: 1 }, 'BTC', '0.002', true],
    ['of a code of several currencies', '150', { symbol: 'USDT' }, 'USDT', '150.000000000000000001', false],
    ['of the account', '1000', {}, 'USD', '278.501000000000000001', true],
    ['in USD', '278.501', { symbol: 'USD' }, 'USD', '278.501000000000000001', false],
    ['in a symbol that is not known', '0', { symbol: 'EUR' }, 'EUR', undefined, true],
  ])('%s is compared with what is queued', (_, balance, of, currency, queued, isEnough) => {
    expect(compare(balance, of)).toEqual([{ currency, balance, queued, isEnough }]);
    // Where a rate is missing.
    const unknown = { queued: undefined, isEnough: true };
    if (currency === 'USD') expect(compare('1', of, [...QUEUED, sum(9, '5')])).toMatchObject([unknown]);
  });
});
