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
  const estimate = (minutes: MinuteStatistics[], stats = {}): ReturnType<typeof estimateEnd> =>
    estimateEnd({ minutes }, { ...WORKING, ...stats }, NOW);

  it('comes from the minutes that began with a backlog', () => {
    const minutes = [minute(9, 1, 0), minute(5, 3, 900), minute(4, 50, 850), minute(3, 50, 800), minute(0, 25, 600)];
    // Two full minutes, two without a send, and a half.
    expect(estimate(minutes)).toEqual({ ratePerMinute: 125 / 4.5, endsAt: NOW + (600 / (125 / 4.5)) * MINUTE_MS });
  });

  it('is now where nothing is queued', () => {
    expect(estimate([minute(5, 3, 0)], { queued: 0 }).endsAt).toBe(NOW);
  });

  it('cannot be said while nothing was sent, also long after the last event', () => {
    expect(estimate([minute(2, 0, 600), minute(1, 0, 600)]).endsAt).toBeUndefined();
    expect(estimate([minute(300, 50, 600)])).toEqual({ ratePerMinute: 0, endsAt: undefined });
    expect(estimate([minute(0, 2, 600)]).endsAt).toBeUndefined();
    expect(estimate([])).toEqual({ ratePerMinute: 0, endsAt: undefined });
  });

  it.each([
    ['paused', { paused: true }],
    ['stopped by an objection', { objections: [{}] }],
    ['without a sender', { sender: null }],
  ])('cannot be said of an account that is %s', (_, stats) => {
    const minutes = [minute(4, 50, 850), minute(3, 50, 800), minute(2, 50, 750)];
    expect(estimate(minutes).endsAt).toBeDefined();
    expect(estimate(minutes, stats)).toMatchObject({ endsAt: undefined });
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
