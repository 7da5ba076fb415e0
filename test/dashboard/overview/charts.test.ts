import { describe, expect, it } from '@jest/globals';
import { PICTURE_SLOTS, picturesSection, toTimeSlots } from '../../../src/dashboard/overview/charts.js';
import type { MinuteStatistics } from '../../../src/ledger/reads/statistics.js';

const NOW = Date.parse('2030-01-01T12:30:20Z');

function minute(age: number, given: Partial<MinuteStatistics> = {}): MinuteStatistics {
  const at = Math.floor(NOW / 60_000) * 60_000 - age * 60_000;
  const gaps = { smallestGapMs: 1_012, largestGapMs: 2_500 };
  return { at, sent: 58, ...gaps, completed: 0, rejected: 0, unknown: 0, backlog: 10, ...given };
}

describe('time slots', () => {
  it('are as many as asked for, and carry the backlog on where nothing happened', () => {
    const slots = toTimeSlots([minute(90, { backlog: 7 }), minute(2, { backlog: 40 })], PICTURE_SLOTS.hour, NOW);
    expect(slots).toHaveLength(60);
    expect([slots[0]?.backlog, slots.at(-3)?.backlog, slots.at(-1)?.backlog]).toEqual([7, 40, 40]);
    expect([slots[0]?.sent, slots.at(-3)?.sent]).toEqual([0, 58]);
  });

  it('of a day sum up their minutes, with the smallest and the largest gap', () => {
    const minutes = [minute(1, { smallestGapMs: 1_020, largestGapMs: 9_000 }), minute(0)];
    const last = toTimeSlots(minutes, PICTURE_SLOTS.day, NOW).at(-1);
    expect(last).toMatchObject({ sent: 58, smallestGapMs: 1_012 });
    expect(toTimeSlots(minutes, PICTURE_SLOTS.day, NOW).at(-2)).toMatchObject({ sent: 58, largestGapMs: 9_000 });
  });
});

describe('the pictures', () => {
  const draw = (minutes: readonly MinuteStatistics[]): string =>
    picturesSection({ minutes }, minutes.at(-1)?.backlog ?? 0, 'hour', '/payouts', NOW).text;

  it('have a name, a description, a table that says the same, and no inline style', () => {
    const page = draw([minute(3), minute(2), minute(0)]);
    expect(page.match(/<svg\s+role="img"/g)).toHaveLength(3);
    expect(page).toContain('<desc id="sends-desc">174 sends in the last hour, 58 a minute at most.</desc>');
    expect(page).toContain('1.012 s at least');
    expect(page).toMatch(/<th scope="row">12:25<\/th>\s*<td class="number">\s*116\s*<\/td>/);
    expect(page).not.toMatch(/style=|NaN|undefined/);
  });

  it('mark a gap below a second', () => {
    expect(draw([minute(1, { smallestGapMs: 950 })])).toContain('class="bar tone-bad"');
    expect(draw([minute(1)])).not.toContain('bar tone-bad');
  });

  it('are drawn without any event, too', () => {
    expect(draw([])).toContain('0 sends in the last hour');
    expect(draw([])).not.toMatch(/NaN|Infinity|undefined/);
  });
});
