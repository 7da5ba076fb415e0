import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ProcessPool, type PoolProcess } from '../../src/cli/worker/process-pool.js';
import { silentLogger } from '../../src/base/logger.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { judgeAlerts } from './support/firing-alerts.js';
import { MINUTES_BEFORE, type InputSeries } from './support/series.js';

/** The alerts about processes that are gone, or come back again and again. */

const HOUR = 60;

/** What the one process of a group reports in these minutes: it has one account. */
function group(instance: string, platformId: number, minutes: string): InputSeries[] {
  const from = `instance="${instance}",job="payouts"`;
  return [
    { series: `payouts_build_info{version="1",${from}}`, values: minutes },
    { series: `payouts_lease_held{platform_id="${platformId}",${from}}`, values: minutes },
  ];
}

const always = (minutes: number): string => `1x${MINUTES_BEFORE + minutes}`;
const untilGone = `1x${MINUTES_BEFORE} stale`;

it('an account that no process reports any more is told while another group works', async () => {
  const series = [...group('a', 1, always(HOUR)), ...group('b', 2, untilGone)];
  expect(await judgeAlerts(series, HOUR, ['PayoutsNoSender'])).toBeUndefined();
});

it('an account that is still reported is not, wherever its process runs now', async () => {
  const moved = `_x${MINUTES_BEFORE + 1} ${always(HOUR)}`;
  const series = [...group('a', 1, always(HOUR)), ...group('b', 2, untilGone), ...group('c', 2, moved)];
  expect(await judgeAlerts(series, HOUR, [])).toBeUndefined();
});

it('an account that is back within two minutes is not', async () => {
  const back = `${untilGone} _x1 ${always(HOUR)}`;
  expect(await judgeAlerts([...group('a', 1, always(HOUR)), ...group('b', 2, back)], HOUR, [])).toBeUndefined();
});

it('where no process reports anything, one alert tells it', async () => {
  const series = [...group('a', 1, untilGone), ...group('b', 2, untilGone)];
  expect(await judgeAlerts(series, HOUR, ['PayoutsWorkerMissing'])).toBeUndefined();
});

it.each([
  { hours: 23, told: ['PayoutsNoSender', 'PayoutsWorkerMissing'] },
  { hours: 25, told: ['PayoutsWorkerMissing'] },
])('an account that was last reported $hours hours ago: $told', async ({ hours, told }) => {
  // Until then nothing runs; then the other group comes back, with its account alone.
  const back = `${untilGone} _x${hours * HOUR} ${always(HOUR)}`;
  const series = [...group('a', 1, back), ...group('b', 2, untilGone)];
  expect(await judgeAlerts(series, (hours + 2) * HOUR, told)).toBeUndefined();
});

/** A process that was started at these minutes, each start another value, until the last minute. */
function startedAt(instance: string, starts: readonly number[], minutes: number): InputSeries {
  const values = Array.from({ length: minutes + 1 }, (_, at) => starts.filter((start) => start <= at).length);
  return startTimes(instance, values);
}

function startTimes(instance: string, values: readonly (number | undefined)[]): InputSeries {
  const series = `payouts_process_start_time_seconds{instance="${instance}",job="payouts"}`;
  return { series, values: values.map((value) => value ?? 'stale').join(' ') };
}

const RESTARTS = ['PayoutsProcessRestarts'];
const always2h = group('other', 1, always(2 * HOUR));

describe('a process that was started again', () => {
  it.each([
    { starts: [20, 25, 30, 35], told: RESTARTS },
    { starts: [20, 21, 22], told: [] },
    { starts: [20, 30, 40, 50, 60, 70, 80], told: [] },
  ])('at the minutes $starts: $told', async ({ starts, told }) => {
    expect(await judgeAlerts([...always2h, startedAt('a', starts, 2 * HOUR)], 2 * HOUR, told)).toBeUndefined();
  });

  it('is counted for itself: several that are deployed together are not told', async () => {
    const series = ['a', 'b', 'c', 'd', 'e'].map((instance) => startedAt(instance, [20], 2 * HOUR));
    expect(await judgeAlerts([...always2h, ...series], 2 * HOUR, [])).toBeUndefined();
  });
});

/** Each process of `payouts worker --processes` runs for this time: the start time that is read once a minute. */
async function readEachMinute(ranMs: number, minutes: number): Promise<(number | undefined)[]> {
  const clock = new ManualClock();
  let startedAtMs: number | undefined;
  const start = (): PoolProcess => {
    startedAtMs = clock.now();
    const child = Object.assign(new EventEmitter(), { pid: 1, connected: false, kill: () => true, send: () => true });
    void clock.sleep(ranMs).then(() => {
      startedAtMs = undefined;
      child.emit('exit', 1, null);
    });
    return child;
  };
  void new ProcessPool(1, start, clock, silentLogger).run(new AbortController().signal);
  const read: (number | undefined)[] = [];
  for (let minute = 0; minute <= minutes; minute += 1) {
    await clock.advance(60_000);
    read.push(startedAtMs);
  }
  return read;
}

it.each([
  { ranMs: 65_000, told: RESTARTS },
  { ranMs: 120_000, told: RESTARTS },
  { ranMs: 600_000, told: [] },
])('one that --processes starts again after $ranMs ms: $told, also hours later', async ({ ranMs, told }) => {
  const read = await readEachMinute(ranMs, 5 * HOUR);
  for (const values of [read.slice(0, 2 * HOUR), read.slice(-2 * HOUR)]) {
    expect(await judgeAlerts([...always2h, startTimes('a', values)], 2 * HOUR, told)).toBeUndefined();
  }
});
