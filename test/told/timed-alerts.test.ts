import { describe, expect, it } from '@jest/globals';
import { judgeAlerts } from './support/firing-alerts.js';
import { MINUTES_BEFORE, type InputSeries } from './support/series.js';

/** When an alert fires that must not fire too early, over series written by hand. */

const MINUTES = 30;
const LENGTH = MINUTES_BEFORE + MINUTES;

const series = (name: string, values: string, labels = ''): InputSeries => ({
  series: `${name}{platform_id="7"${labels},instance="host-1:9464",job="payouts"}`,
  values,
});
const always = (name: string, value: number, labels = ''): InputSeries => series(name, `${value}+0x${LENGTH}`, labels);
const UP = [always('payouts_build_info', 1), always('payouts_lease_held', 1)];

describe('tries that send nothing', () => {
  const EPOCH = 'payouts_lease_epoch';
  const TRIES = 'payouts_not_sent_total';

  it.each<[string, epoch: string, tries: string, readonly string[]]>([
    ['of the first minute after a start', `_x15 1+0x${MINUTES}`, `_x15 0 9+0x${MINUTES}`, []],
    ['of the first minute after a takeover', `1+0x14 2+0x${MINUTES}`, `0+0x14 0 9+0x${MINUTES}`, []],
    ['that go on after a takeover', `1+0x14 2+0x${MINUTES}`, `0+0x14 0 9+2x${MINUTES}`, ['PayoutsNotSent']],
    ['that go on', `1+0x${LENGTH}`, `0+0x14 0 9+2x${MINUTES}`, ['PayoutsNotSent']],
  ])('%s', async (_, epoch, tries, told) => {
    expect(
      await judgeAlerts([...UP, series(EPOCH, epoch), series(TRIES, tries, ',cause="other"')], MINUTES, told),
    ).toBeUndefined();
  });
});

describe('held payouts', () => {
  const held = (kind: string, overdueS: number): InputSeries[] => {
    const labels = `,rule="a",kind="${kind}"`;
    return [
      series('payouts_held', `_x${MINUTES_BEFORE} 1+0x${MINUTES}`, labels),
      always('payouts_held_overdue_seconds', overdueS, labels),
    ];
  };
  const HOUR_S = 3_600;

  it.each<[string, number, readonly string[]]>([
    ['signature', 0, ['PayoutsHeld']],
    ['journal', 0, ['PayoutsHeld']],
    ['refuse', 0, ['PayoutsHeld']],
    ['approve', 3 * HOUR_S, []],
    ['approve', 5 * HOUR_S, ['PayoutsHeldTooLong']],
    // A cool-down or office hours: its time has not come.
    ['wait', 0, []],
    ['wait', 3 * HOUR_S, ['PayoutsHeldTooLong']],
  ])('by %s, %d s over their time', async (kind, overdueS, told) => {
    expect(await judgeAlerts([...UP, ...held(kind, overdueS)], MINUTES, told)).toBeUndefined();
  });

  it('at once for what a person must mend', async () => {
    expect(await judgeAlerts([...UP, ...held('refuse', 0)], 1, ['PayoutsHeld'])).toBeUndefined();
  });
});

describe('a slow gateway', () => {
  const answers = (le: string, perMinute: number): InputSeries =>
    series('payouts_gateway_request_seconds_bucket', `0+${perMinute}x${LENGTH}`, `,endpoint="withdraw",le="${le}"`);

  it.each<[string, InputSeries[], readonly string[]]>([
    ['answers of 2 s', [answers('2.5', 60), answers('10', 60), answers('+Inf', 60)], []],
    ['one slow answer in ten', [answers('2.5', 54), answers('10', 60), answers('+Inf', 60)], []],
    ['answers of 10 s', [answers('2.5', 0), answers('10', 60), answers('+Inf', 60)], ['PayoutsGatewaySlow']],
    [
      'no answer at all',
      [series('payouts_gateway_oldest_open_seconds', `40+0x${LENGTH}`, ',endpoint="withdraw"')],
      ['PayoutsGatewaySlow'],
    ],
  ])('%s', async (_, found, told) => {
    expect(await judgeAlerts([...UP, ...found], MINUTES, told)).toBeUndefined();
  });
});

describe('an exporter', () => {
  const exporter = (values: string): InputSeries => series('payouts_exporter_info', values, ',exporter="notify"');

  it('that was there and is not any more', async () => {
    const found = [...UP, exporter(`1+0x${MINUTES_BEFORE} stale`)];
    expect(await judgeAlerts(found, MINUTES, ['PayoutsExporterMissing'])).toBeUndefined();
  });

  it('that never was is missed by nobody', async () => {
    expect(await judgeAlerts(UP, MINUTES, [])).toBeUndefined();
  });
});
