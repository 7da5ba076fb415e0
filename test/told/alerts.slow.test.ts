import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKeyGauges } from '../../src/worker/monitoring/account-gauges.js';
import { keyEntry, keyringOf, testKey, type KeyEntry } from '../control/support/keys.js';
import {
  alertRules,
  extrapolate,
  judgeAlerts,
  judgeEvery,
  judgeMany,
  MINUTES_BEFORE,
  type InputSeries,
} from './alerts.js';
import { WAYS } from './ways/index.js';

/** Which alerts fire, and when, over series that are written by hand. */

const HOUR = 60;
const HALF_HOUR = 30;

/** @param values - one a minute, from {@link MINUTES_BEFORE} on as they are then */
const series = (name: string, values: string, labels = '', instance = 'a') => ({
  series: `payouts_${name}{${labels === '' ? '' : `${labels},`}instance="${instance}",job="payouts"}`,
  values,
});
const of7 = (name: string, values: string, labels = '', instance = 'a') =>
  series(name, values, `platform_id="7"${labels}`, instance);
const always = (value: number, minutes = HOUR) => `${value}+0x${MINUTES_BEFORE + minutes}`;
const untilGone = `1x${MINUTES_BEFORE} stale`;
const since = (values: string) => `_x${MINUTES_BEFORE} ${values}`;
const changesTo = (value: number) => `0+0x14 ${value}+0x${HALF_HOUR}`;

const UP = [of7('build_info', always(1)), of7('lease_held', always(1))];

type Case = readonly [name: string, series: readonly InputSeries[], alerts: string, minutes?: number];
const toNames = (alerts: string) => alerts.split(' ').flatMap((name) => (name ? [`Payouts${name}`] : []));

/** Alerts that a case of this file expects to fire. */
const expected = new Set<string>();

function fires(what: string, cases: readonly Case[], usually = HALF_HOUR) {
  for (const [, , names] of cases) for (const alert of toNames(names)) expected.add(alert);
  it(`${what} fire what they should`, async () => {
    const questions = cases.map(([, given, names, minutes = usually]) => ({
      ...{ series: given, alerts: toNames(names), minutes },
    }));
    const wrong = (await judgeMany(questions)).map((problem, index) => problem && [cases[index]?.[0], problem]);
    expect(wrong.filter(Boolean)).toEqual([]);
  });
}

const at = (second: number, text: string) => ({ at: second, scrapes: [{ instance: 'a', text }] });

it('the judge finds an alert that fires, one that is missing and one that is too many, and waits as a rule does', async () => {
  const up = at(0, '# TYPE payouts_build_info gauge\npayouts_build_info{version="1"} 1\n');
  const gone = { before: up, since: up, now: { at: 1, scrapes: [] } };
  const judge = async (minutes: number, names: string) =>
    judgeAlerts({ series: extrapolate(gone, minutes), minutes, alerts: toNames(names) });
  expect(await judge(10, 'WorkerMissing')).toBeUndefined();
  expect(await judge(10, '')).toContain('PayoutsWorkerMissing');
  expect(await judge(10, 'WorkerMissing Paused')).toContain('PayoutsPaused');
  expect(await judge(1, '')).toBeUndefined();
});

const tries = (name: string, epoch: string, notSent: string, alerts: string): Case => [
  name,
  [...UP, of7('lease_epoch', epoch), of7('not_sent_total', notSent, ',cause="other"')],
  alerts,
];
const held = (kind: string, overdueHours: number, alerts: string, minutes = HALF_HOUR): Case => {
  const labels = `,rule="a",kind="${kind}"`;
  const overdue = of7('held_overdue_seconds', always(overdueHours * 3_600), labels);
  const count = of7('held', since(`1+0x${minutes}`), labels);
  return [`held by ${kind}, ${overdueHours} h over their time`, [...UP, count, overdue], alerts, minutes];
};
fires('payouts', [
  tries('not sent in the first minute after a start', since(`1+0x${HALF_HOUR}`), since(`0 9+0x${HALF_HOUR}`), ''),
  tries('not sent in the first minute after a takeover', `1+0x14 2+0x${HALF_HOUR}`, `0+0x14 0 9+0x${HALF_HOUR}`, ''),
  tries('not sent after a takeover', `1+0x14 2+0x${HALF_HOUR}`, `0+0x14 0 9+2x${HALF_HOUR}`, 'NotSent'),
  // At once for what an operator must repair.
  held('refuse', 0, 'Held', 1),
  held('approve', 3, ''),
  held('approve', 5, 'HeldTooLong'),
  // A cool-down or office hours: its time has not come.
  held('wait', 0, ''),
  held('wait', 3, 'HeldTooLong'),
]);

const answers = (slow: number) =>
  [
    ['2.5', 60 - slow],
    ['10', 60],
    ['+Inf', 60],
  ].map(([le = '', perMinute = 0]) => {
    const values = `0+${perMinute}x${MINUTES_BEFORE + HALF_HOUR}`;
    return of7('gateway_request_seconds_bucket', values, `,endpoint="withdraw",le="${le}"`);
  });
const exporter = of7('exporter_info', untilGone, ',exporter="notify"');
const policy = (hash: string, values: string) => of7('policy_info', values, `,hash="${hash}"`);
const others: readonly Case[] = [
  ['one slow answer of the gateway in ten', answers(6), ''],
  ['a gateway that answers in 10 s', answers(60), 'GatewaySlow'],
  [
    'a gateway that does not answer',
    [of7('gateway_oldest_open_seconds', always(40), ',endpoint="withdraw"')],
    'GatewaySlow',
  ],
  ['an exporter that was there and is not any more', [exporter], 'ExporterMissing'],
  ['a notifier that reads nothing', [of7('notifications_heartbeat_age_seconds', changesTo(601))], 'NotifierSilent'],
  ['a notifier that waits for its next try', [of7('notifications_heartbeat_age_seconds', changesTo(590))], ''],
  [
    'a second notifier that reads',
    [
      of7('notifications_heartbeat_age_seconds', changesTo(601)),
      of7('notifications_heartbeat_age_seconds', always(5), '', 'b'),
    ],
    '',
  ],
  ['nothing else', [], ''],
  ['81 % of a policy used', [of7('policy_usage_ratio', changesTo(0.81), ',rule="day"')], 'PolicyNearlyUsed'],
  ['80 % of a policy used', [of7('policy_usage_ratio', changesTo(0.8), ',rule="day"')], ''],
  ['rates of more than 15 minutes', [of7('rate_age_seconds', changesTo(901))], 'RatesStale'],
  ['younger rates', [of7('rate_age_seconds', changesTo(600))], ''],
  ['an unreadable policy', [of7('policy_reload_failed', changesTo(1))], 'PolicyReloadFailed'],
  ['a key in Redis that cannot be read', [of7('unreadable_keys', changesTo(1))], 'KeysUnreadable'],
  ['a changed policy', [policy('a', untilGone), policy('b', since(`1+0x${HALF_HOUR}`))], 'PolicyChanged'],
  ['the first policy of a worker', [policy('a', since(`1+0x${HALF_HOUR}`))], ''],
  ['a receipt that could not be signed', [of7('receipts_failed_total', changesTo(1))], 'ReceiptsFailed'],
  ['an unreadable keyring', [series('keys_reload_failed', changesTo(1))], 'KeysReloadFailed'],
  ['a payout that was paid late', [of7('late_payments', changesTo(1))], 'PaidLate'],
  [
    'an order id with another payment',
    [of7('look_ups_total', changesTo(1), ',answer="other_payment"')],
    'OtherPayment',
  ],
  ['an order id that the gateway refuses', [of7('look_ups_total', changesTo(1), ',answer="refused"')], ''],
  ['two sends within a second', [of7('send_gap_seconds_bucket', changesTo(1), ',le="1"')], 'SentTooClose'],
  ['two sends within more than a second', [of7('send_gap_seconds_bucket', changesTo(1), ',le="1.05"')], ''],
  ['a payment that failed', [of7('polls_total', changesTo(1), ',result="failed"')], 'Failed'],
  ['a payment that was completed', [of7('polls_total', changesTo(1), ',result="completed"')], ''],
  ['notifications of more than five minutes', [of7('notification_lag_seconds', changesTo(301))], 'NotificationsLate'],
  ['younger notifications', [of7('notification_lag_seconds', changesTo(290))], ''],
  ['forty wrong passwords', [series('dashboard_login_failures_total', changesTo(40))], 'DashboardGuessed'],
  ['twenty wrong passwords', [series('dashboard_login_failures_total', changesTo(20))], ''],
  ...(
    [
      // The simulated time begins with 1970.
      ['in more than 14 days', 14 * 24 + 2, ''],
      ['in 14 days', 14 * 24, 'KeyExpires'],
      ['now', 0, 'KeyExpires'],
    ] as const
  ).map(([when, hours, alerts]): Case => {
    const end = of7('key_not_after_timestamp_seconds', always(hours * 3_600), ',key="shop",role="producer"');
    return [`a key that ends ${when}`, [end], alerts];
  }),
];
fires(
  'signs of a working process',
  others.map(([name, found, alerts]) => [name, [...UP, ...found], alerts]),
);

/** For so many quarters of a minute, after five minutes without one. */
const unknownFor = (quarters: number) => of7('in_state', `0+0x20 1+0x${quarters - 1} 0+0x20`, ',state="unknown"');
const works = (value: number) => of7('look_up_works', `${value}+0x60`);
it.each<[name: string, found: readonly InputSeries[], alerts: string]>([
  ['for 15 s', [works(0), unknownFor(1)], 'Unknown'],
  ['for 45 s, while the gateway finds payments by order id', [works(1), unknownFor(3)], ''],
  [
    'one after another, each for 45 s',
    [works(1), of7('in_state', '0+0x20 1 1 1 0 1 1 1 0 1 1 1 0', ',state="unknown"')],
    '',
  ],
  ['for longer, although it does', [works(1), unknownFor(6)], 'Unknown'],
  ['for 15 s, and no process says whether it does', [unknownFor(1)], 'Unknown'],
])('the alert about payouts that are unknown %s', async (_, found, alerts) => {
  const up = [of7('build_info', '1+0x60'), of7('lease_held', '1+0x60')];
  expect(await judgeEvery(15, { series: [...up, ...found], totalS: 15 * 40, alerts: toNames(alerts) })).toBeUndefined();
});

it('a key has a gauge where it ends, until another keyring is read', async () => {
  const registry = new Registry();
  const set = createKeyGauges(registry);
  const read = async (changes?: Partial<KeyEntry>) => {
    const keys = changes && keyringOf(keyEntry(testKey(1), changes)).keys;
    set(keys && { keys, reloadTrouble: undefined });
    return registry.metrics();
  };
  const notAfter = '2030-02-01T00:00:00Z';
  expect(await read({})).not.toContain('{key=');
  expect(await read({ notAfter })).toContain('{key="shop",role="producer"} 1896134400');
  expect(await read({ notAfter, revoked: true })).not.toContain('{key=');
  expect(await read()).not.toContain('shop');
});

/** What a process with one account reports in these minutes. */
const group = (instance: string, platformId: number, minutes: string) => [
  series('build_info', minutes, 'version="1"', instance),
  series('lease_held', minutes, `platform_id="${platformId}"`, instance),
];
const back = (afterMinutes: number, minutes = HOUR) => `${untilGone} _x${afterMinutes} ${always(1, minutes)}`;
const a = group('a', 1, always(1));
const goneB = group('b', 2, untilGone);
/** Two that share an account: the one that rests says only that it does not send. */
const shared = (...leases: readonly [number, number]) =>
  leases.flatMap((lease, index) => {
    const says = { build_info: 1, redis_up: 1, sending_refused: 0, lease_held: lease };
    return Object.entries(says).map(([name, value]) => of7(name, always(value), '', `host-${index}`));
  });
const backlog = (sends: string) => [
  of7('due', always(100), '', 'host-0'),
  of7('paused', always(0), '', 'host-0'),
  of7('in_state', always(0), ',state="unknown"', 'host-0'),
  of7('oldest_age_seconds', always(60), ',state="queued"', 'host-0'),
  of7('sends_total', always(0), ',outcome="accepted"', 'host-1'),
  of7('sends_total', sends, ',outcome="accepted"', 'host-0'),
];
fires(
  'accounts of several processes',
  [
    ['that none reports any more', [...a, ...goneB], 'NoSender'],
    ['that another reports', [...a, ...goneB, ...group('c', 2, `_x${MINUTES_BEFORE + 1} ${always(1)}`)], ''],
    ['that is back within two minutes', [...a, ...group('b', 2, back(1))], ''],
    ['none of which is reported', [...group('a', 1, untilGone), ...goneB], 'WorkerMissing'],
    // Until then nothing runs; then the other group comes back, with its account alone.
    ['last reported 23 hours ago', [...group('a', 1, back(23 * HOUR)), ...goneB], 'NoSender WorkerMissing', 25 * HOUR],
    ['last reported 25 hours ago', [...group('a', 1, back(25 * HOUR)), ...goneB], 'WorkerMissing', 27 * HOUR],
    ['of which one works', [...shared(1, 0), ...backlog(`0+60x${MINUTES_BEFORE + HOUR}`)], ''],
    ['whose backlog stands still', [...shared(1, 0), ...backlog(always(60))], 'StandStill'],
    ['for which both rest', shared(0, 0), 'NoSender'],
  ],
  HOUR,
);

const OTHER = group('other', 1, always(1, 2 * HOUR));
const startedAt = (...starts: number[]) => {
  const minutes = Array.from({ length: 2 * HOUR + 1 }, (_, minute) => minute);
  const values = minutes.map((minute) => starts.filter((start) => start <= minute).length);
  return [...OTHER, series('process_start_time_seconds', values.join(' '))];
};
fires(
  'starts of a process',
  [
    ['four times', startedAt(20, 25, 30, 35), 'ProcessRestarts'],
    ['three times', startedAt(20, 21, 22), ''],
    ['every ten minutes', startedAt(20, 30, 40, 50, 60, 70, 80), ''],
  ],
  2 * HOUR,
);

it('each alert fires in a case here, or in a way to stand still', () => {
  for (const { told } of WAYS) for (const alert of told.alerts) expected.add(alert);
  expect(alertRules.map(({ alert }) => alert).filter((alert) => !expected.has(alert))).toEqual([]);
});
