import { describe, expect, it } from '@jest/globals';
import { estimateEnd, MINUTE_MS, type MinuteStatistics, parseStatistics } from '../../src/ledger/reads/statistics.js';

const NOW = Date.parse('2030-01-01T12:00:30Z');
const WORKING = { queued: 600, paused: false, objections: [], sender: { owner: 'one', epoch: 1, heartbeat: 1 } };

/** A minute, given as how many minutes ago it was; 0 is the present one, of which half is over. */
function minute(ago: number, sent: number, backlog: number): MinuteStatistics {
  const at = Math.floor(NOW / MINUTE_MS - ago) * MINUTE_MS;
  const none = { smallestGapMs: undefined, largestGapMs: undefined, completed: 0, rejected: 0, unknown: 0 };
  return { at, sent, backlog, ...none };
}

describe('the expected end of the backlog', () => {
  const PACE = Array.from({ length: 20 }, () => 1_100);
  const estimate = (pace: number[], stats = {}, stoppedBy?: string): ReturnType<typeof estimateEnd> =>
    estimateEnd({ minutes: [], pace }, { ...WORKING, ...stats }, NOW, stoppedBy);

  it('comes from the last gaps between writes', () => {
    expect(estimate(PACE)).toMatchObject({ endsAt: NOW + 600 * 1_100, why: undefined });
    expect(estimate([1_010])).toMatchObject({ endsAt: NOW + 600 * 1_010 });
  });

  it.each([
    ['a standstill', PACE.with(10, 3_600_000)],
    ['some standstills', PACE.with(3, 900_000).with(10, 31_000).with(11, 61_000)],
  ])('does not come from %s in the middle', (_, pace) => {
    expect(estimate(pace).endsAt).toBe(NOW + 600 * 1_100);
  });

  it('comes from slow responses where they are many', () => {
    const slow = PACE.map((gapMs, index) => (index % 2 === 0 ? 5_000 : gapMs));
    expect(estimate(slow).endsAt).toBe(NOW + 600 * 3_050);
  });

  it('is never before an interval for each payout', () => {
    for (const largest of [1_100, 2_000, 60_000]) {
      const pace = PACE.map((gapMs, index) => gapMs + (largest * index) / 20);
      expect((estimate(pace).endsAt ?? 0) - NOW).toBeGreaterThanOrEqual(600 * Math.min(...pace));
    }
  });

  it('is now where nothing is queued', () => {
    expect(estimate(PACE, { queued: 0, paused: true })).toMatchObject({ endsAt: NOW, why: undefined });
  });

  it.each([
    ['the account is paused', PACE, { paused: true }],
    ['a send journal contradicts the ledger', PACE, { paused: true, objections: [{}] }],
    ['no worker sends', PACE, { sender: null }],
    ['no two payouts were sent one right after the other yet', [], {}],
  ])('is not known where %s', (why, pace, stats) => {
    expect(estimate(pace, stats)).toMatchObject({ endsAt: undefined, why });
  });

  it('is not known while something else stops the account, which it names', () => {
    expect(estimate(PACE, {}, 'Gateway down')).toMatchObject({ endsAt: undefined, why: 'Gateway down' });
  });
});

describe('the rate', () => {
  const rate = (...minutes: MinuteStatistics[]): number =>
    estimateEnd({ minutes, pace: [] }, { ...WORKING }, NOW).ratePerMinute;

  it('is that of the last 10 minutes, from the first of them that sent', () => {
    expect(rate(minute(30, 60, 0), minute(4, 40, 850), minute(3, 50, 800), minute(0, 27, 600))).toBe(117 / 4.5);
    expect(rate(minute(0, 5, 600))).toBe(5);
    expect(rate(minute(300, 50, 600))).toBe(0);
    expect(rate()).toBe(0);
  });
});

describe('stored statistics', () => {
  it('of another day say nothing of today, and leave out minutes older than 24 hours', () => {
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
});
