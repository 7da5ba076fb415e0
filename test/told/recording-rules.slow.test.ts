import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import type { GrafanaDashboard } from '../../scripts/check-grafana.js';
import { judgeRecorded, type InputSeries } from './alerts.js';

/** What the recording rules say over series that are written by hand, one value a minute. */

const series = (name: string, values: string, labels = ''): InputSeries => ({
  series: `payouts_${name}{platform_id="7"${labels},instance="a",job="payouts"}`,
  values,
});
const HELD = series('lease_held', '1+0x3000');
const UP = { series: 'payouts_redis_up{instance="a",job="payouts"}', values: '1+0x2000' };
const WELL = [HELD, UP, series('paused', '0+0x2000'), series('objections', '0+0x2000')];

const CANNOT = 'platform_id:payouts_cannot_send:bool';
const RATIO = 'platform_id:payouts_cannot_send:ratio_1d';

/** All is well for 10 minutes, then it is not. */
const since = (before: number, then: number) => `${before}+0x9 ${then}+0x60`;
const global = (name: string, values: string): InputSeries => ({
  series: `payouts_${name}{instance="a",job="payouts"}`,
  values,
});

it.each<[what: string, given: readonly InputSeries[]]>([
  ['the account is paused', [HELD, UP, series('paused', since(0, 1))]],
  ['a journal objects', [HELD, UP, series('objections', since(0, 2))]],
  ['no process holds the lease', [UP, series('lease_held', since(1, 0))]],
  ['no worker reports any more', [UP, series('lease_held', '1+0x9 stale')]],
  [
    'a replica is missing',
    [...WELL, series('replica_missing_since_timestamp_seconds', '_x10 600+0x60', ',replica="r"')],
  ],
  ['Redis does not respond', [HELD, global('redis_up', since(1, 0))]],
  ['Redis refuses writes', [...WELL, global('redis_refuses_writes', since(0, 1))]],
  ['Redis may forget', [...WELL, global('redis_may_forget', since(0, 1))]],
  [
    'payouts are put back, and none is sent',
    [
      ...WELL,
      series('not_sent_total', '0+0x9 0+3x60', ',cause="gateway"'),
      series('sends_total', '0+5x9 50+0x60', ',outcome="accepted"'),
    ],
  ],
])('nothing could be sent while %s', async (_what, given) => {
  expect(await judgeRecorded(given, 8, CANNOT, 0)).toBeUndefined();
  expect(await judgeRecorded(given, 20, CANNOT, 1)).toBeUndefined();
});

it('payouts could be sent while all is well, another process stands by, and some are put back among others', async () => {
  const standby = {
    series: 'payouts_lease_held{platform_id="7",instance="b",job="payouts"}',
    values: '0+0x60',
  };
  const some = [
    series('not_sent_total', '0+1x60', ',cause="gateway"'),
    series('sends_total', '0+5x60', ',outcome="accepted"'),
  ];
  for (const given of [WELL, [...WELL, standby], [...WELL, ...some]])
    expect(await judgeRecorded(given, 20, CANNOT, 0)).toBeUndefined();
});

it('the share of a day is that of the last 24 hours', async () => {
  const DAY = 24 * 60;
  // Paused for six hours.
  const given = [HELD, UP, series('paused', `0+0x359 1+0x359 0+0x2000`)];
  const rounded = `round(${RATIO}, 0.01)`;
  expect(await judgeRecorded(given, DAY, rounded, 0.25)).toBeUndefined();
  expect(await judgeRecorded(given, DAY + 576, rounded, 0.1)).toBeUndefined();
});

it.each(['sent', 'completed'])(
  'half and 99 of 100 payouts were %s within these times, by every worker',
  async (state) => {
    // An hour of 100 a minute: 90 within 10 s, 8 within 60 s, 2 within 300 s, by two workers.
    const by = (instance: string) =>
      [
        ['5', 0],
        ['10', 45],
        ['30', 45],
        ['60', 49],
        ['300', 50],
        ['+Inf', 50],
      ].map(([le, count]) => ({
        series: `payouts_enqueue_to_${state}_seconds_bucket{platform_id="7",instance="${instance}",le="${le}"}`,
        values: `0+${count}x60`,
      }));
    const given = [...by('a'), ...by('b')];
    const name = `platform_id:payouts_enqueue_to_${state}_seconds`;
    // Within a bucket Prometheus assumes an even spread: 5 + 5 * 50 / 90, and 60 + 240 / 2.
    expect(await judgeRecorded(given, 60, `round(${name}:p50_1d, 0.01)`, 7.78)).toBeUndefined();
    expect(await judgeRecorded(given, 60, `round(${name}:p99_1d)`, 180)).toBeUndefined();
  },
);

it('the dashboard for Grafana marks a take-over for one step, and no start, also where the sender before has gone', async () => {
  const { annotations } = JSON.parse(readFileSync('docs/grafana-dashboard.json', 'utf8')) as GrafanaDashboard;
  const takeOver = annotations.list.find(({ name }) => name === 'Take-over')?.expr.replaceAll('$account', '.*') ?? '';
  const epochs = (instance: string, values: string) => ({
    series: `payouts_lease_epoch{platform_id="7",instance="${instance}",job="payouts"}`,
    values,
  });
  const [first, second] = [epochs('a', '4+0x9 stale'), epochs('b', '_x20 5+0x40')];
  for (const minute of [0, 5, 15, 22, 30])
    expect(await judgeRecorded([first, second], minute, takeOver, undefined)).toBeUndefined();
  expect(await judgeRecorded([first, second], 20, takeOver, 5)).toBeUndefined();
});
