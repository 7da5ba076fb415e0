import { expect, it } from '@jest/globals';
import { judgeAlerts } from './support/firing-alerts.js';
import { MINUTES_BEFORE, type InputSeries } from './support/series.js';

/** The alerts where two processes share an account: the one that rests says only that it does not send. */

const MINUTES = 60;
const MOVES_AT = 30;
const THREE_DAYS = 3 * 24 * 60;

const of = (host: number, name: string, values: string, labels = ''): InputSeries => ({
  series: `${name}{platform_id="7"${labels},instance="host-${host}:9464",job="payouts"}`,
  values,
});
const always = (host: number, name: string, value: number, labels = ''): InputSeries =>
  of(host, name, `${value}+0x${MINUTES_BEFORE + MINUTES}`, labels);

/** What every process says, whatever its part. */
const process = (host: number): InputSeries[] => [
  always(host, 'payouts_build_info', 1),
  always(host, 'payouts_redis_up', 1),
  always(host, 'payouts_sending_refused', 0),
];

/** What the ledger says of an account with a backlog that is sent. */
const BACKLOG = [
  always(1, 'payouts_due', 100),
  always(1, 'payouts_paused', 0),
  always(1, 'payouts_in_state', 0, ',state="unknown"'),
  always(1, 'payouts_oldest_age_seconds', 60, ',state="queued"'),
  always(1, 'payouts_balance', 5, ',currency="BTC"'),
  always(1, 'payouts_balance_needed', 4, ',currency="BTC"'),
];
const SENDS = of(1, 'payouts_sends_total', `0+60x${MINUTES_BEFORE + MINUTES}`, ',outcome="accepted"');
const RESTS = always(2, 'payouts_sends_total', 0, ',outcome="accepted"');

it('where one process works and one rests, nothing is told', async () => {
  const leases = [always(1, 'payouts_lease_held', 1), always(2, 'payouts_lease_held', 0)];
  const series = [...process(1), ...process(2), ...leases, ...BACKLOG, SENDS, RESTS];
  expect(await judgeAlerts(series, MINUTES, [])).toBeUndefined();
});

it('a backlog that stands still is told although one process says nothing of it', async () => {
  const leases = [always(1, 'payouts_lease_held', 1), always(2, 'payouts_lease_held', 0)];
  const stands = always(1, 'payouts_sends_total', 60, ',outcome="accepted"');
  const series = [...process(1), ...process(2), ...leases, ...BACKLOG, stands, RESTS];
  expect(await judgeAlerts(series, MINUTES, ['PayoutsStandStill'])).toBeUndefined();
});

it('an account for which both rest is told', async () => {
  const leases = [always(1, 'payouts_lease_held', 0), always(2, 'payouts_lease_held', 0)];
  expect(await judgeAlerts([...process(1), ...process(2), ...leases], MINUTES, ['PayoutsNoSender'])).toBeUndefined();
});

it('three days after an account moved, its late payments of before are not told once more', async () => {
  const series = [
    of(1, 'payouts_build_info', `1+0x${2 * THREE_DAYS}`),
    of(1, 'payouts_late_payments', `1+0x${MOVES_AT - 1} stale`),
    of(2, 'payouts_late_payments', `_x${MOVES_AT + 2} 1+0x${2 * THREE_DAYS}`),
  ];
  expect(await judgeAlerts(series, THREE_DAYS + MINUTES, [], [], THREE_DAYS + 10)).toBeUndefined();
}, 180_000);
