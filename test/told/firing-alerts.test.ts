import { expect, it } from '@jest/globals';
import { judgeAlerts } from './support/firing-alerts.js';
import { extrapolate, type Snapshot } from './support/series.js';

/** The suite's own judgement: it must not agree with whatever a row says. */

const UP = scrape(0, ['# TYPE payouts_build_info gauge', 'payouts_build_info{version="1"} 1']);
const GONE: Snapshot = { at: 1, scrapes: [] };

function scrape(at: number, lines: readonly string[]): Snapshot {
  return { at, scrapes: [{ instance: 'host-1:9464', text: `${lines.join('\n')}\n` }] };
}

it('finds an alert that fires, one that is missing and one that is too many', async () => {
  const series = extrapolate({ before: UP, since: UP, now: GONE }, 10);
  expect(await judgeAlerts(series, 10, ['PayoutsWorkerMissing'])).toBeUndefined();
  expect(await judgeAlerts(series, 10, [])).toContain('PayoutsWorkerMissing');
  expect(await judgeAlerts(series, 10, ['PayoutsWorkerMissing', 'PayoutsPaused'])).toContain('PayoutsPaused');
});

it('waits for as long as a rule says', async () => {
  const series = extrapolate({ before: UP, since: UP, now: GONE }, 1);
  expect(await judgeAlerts(series, 1, [])).toBeUndefined();
});

it('continues counters as fast as they rose, ages with the time, and other gauges as they were', () => {
  const lines = (at: number, values: readonly [number, number, number]): Snapshot =>
    scrape(at, [
      '# TYPE payouts_sends_total counter',
      `payouts_sends_total{outcome="accepted"} ${values[0]}`,
      '# TYPE payouts_oldest_age_seconds gauge',
      `payouts_oldest_age_seconds ${values[1]}`,
      '# TYPE payouts_paused gauge',
      `payouts_paused ${values[2]}`,
    ]);
  const before = lines(0, [1, 0, 0]);
  const series = extrapolate({ before, since: lines(5, [3, 1, 0]), now: lines(7, [7, 3, 1]) }, 9);
  const from = 'instance="host-1:9464",job="payouts"';
  expect(series).toEqual([
    { series: `payouts_sends_total{outcome="accepted",${from}}`, values: '1+0x14 7+120x9' },
    { series: `payouts_oldest_age_seconds{${from}}`, values: '0+0x14 3+60x9' },
    { series: `payouts_paused{${from}}`, values: '0+0x14 1+0x9' },
  ]);
});
