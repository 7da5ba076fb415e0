import { EventEmitter } from 'node:events';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { silentLogger } from '../../src/base/logger.js';
import { ProcessPool, type PoolProcess } from '../../src/cli/worker/process-pool.js';
import { createKeyGauges } from '../../src/worker/monitoring/account-gauges.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { keyEntry, keyringOf, testKey, type KeyEntry } from '../control/support/keys.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { judgeAlerts, judgeMany } from './support/firing-alerts.js';
import { extrapolate, MINUTES_BEFORE, type InputSeries, type Snapshot } from './support/series.js';

/** Which alerts fire, and when, over series that are written by hand or that the metrics of a worker say. */

const HOUR = 60;
const HALF_HOUR = 30;

/** A series of a process. @param values - one a minute, from {@link MINUTES_BEFORE} on as they are then */
const series = (name: string, values: string, labels = '', instance = 'a'): InputSeries => ({
  series: `${name}{${labels === '' ? '' : `${labels},`}instance="${instance}",job="payouts"}`,
  values,
});
const of7 = (name: string, values: string, labels = '', instance = 'a'): InputSeries =>
  series(name, values, `platform_id="7"${labels}`, instance);
const always = (value: number, minutes = HOUR): string => `${value}+0x${MINUTES_BEFORE + minutes}`;
const untilGone = `1x${MINUTES_BEFORE} stale`;
const since = (values: string): string => `_x${MINUTES_BEFORE} ${values}`;

type Case = readonly [name: string, series: readonly InputSeries[], alerts: readonly string[], minutes?: number];

/** Tests that exactly these alerts fire. */
function fires(cases: readonly Case[], usually = HALF_HOUR): void {
  let found: readonly (string | undefined)[];
  beforeAll(async () => {
    found = await judgeMany(cases.map(([, given, alerts, minutes = usually]) => ({ series: given, alerts, minutes })));
  });
  it.each(cases.map(([name, , alerts], index) => [name, alerts, index] as const))('%s: %j', (_, _alerts, index) => {
    expect(found[index]).toBeUndefined();
  });
}

const UP = [of7('payouts_build_info', always(1)), of7('payouts_lease_held', always(1))];

describe('what judges alerts', () => {
  const up: Snapshot = at(0, '# TYPE payouts_build_info gauge\npayouts_build_info{version="1"} 1');
  const gone = { before: up, since: up, now: { at: 1, scrapes: [] } };

  it('finds an alert that fires, one that is missing and one that is too many, and waits as long as a rule', async () => {
    const found = extrapolate(gone, 10);
    expect(await judgeAlerts(found, 10, ['PayoutsWorkerMissing'])).toBeUndefined();
    expect(await judgeAlerts(found, 10, [])).toContain('PayoutsWorkerMissing');
    expect(await judgeAlerts(found, 10, ['PayoutsWorkerMissing', 'PayoutsPaused'])).toContain('PayoutsPaused');
    expect(await judgeAlerts(extrapolate(gone, 1), 1, [])).toBeUndefined();
  });

  it('continues counters as fast as they rose, ages with the time, and other gauges as they were', () => {
    const scrape = (second: number, sends: number, age: number, paused: number): Snapshot =>
      at(
        second,
        `# TYPE payouts_sends_total counter\npayouts_sends_total{outcome="accepted"} ${sends}
# TYPE payouts_oldest_age_seconds gauge\npayouts_oldest_age_seconds ${age}
# TYPE payouts_paused gauge\npayouts_paused ${paused}`,
      );
    expect(extrapolate({ before: scrape(0, 1, 0, 0), since: scrape(5, 3, 1, 0), now: scrape(7, 7, 3, 1) }, 9)).toEqual([
      series('payouts_sends_total', '1+0x14 7+120x9', 'outcome="accepted"'),
      series('payouts_oldest_age_seconds', '0+0x14 3+60x9'),
      series('payouts_paused', '0+0x14 1+0x9'),
    ]);
  });
});

/** What the one process of a host says then. */
function at(second: number, text: string, wallAt = 0): Snapshot {
  return { at: second, wallAt, scrapes: [{ instance: 'a', text: `${text}\n` }] };
}

describe('tries that send nothing', () => {
  const rows: readonly (readonly [string, epoch: string, tries: string, readonly string[]])[] = [
    ['of the first minute after a start', since(`1+0x${HALF_HOUR}`), since(`0 9+0x${HALF_HOUR}`), []],
    ['of the first minute after a takeover', `1+0x14 2+0x${HALF_HOUR}`, `0+0x14 0 9+0x${HALF_HOUR}`, []],
    ['that go on after a takeover', `1+0x14 2+0x${HALF_HOUR}`, `0+0x14 0 9+2x${HALF_HOUR}`, ['PayoutsNotSent']],
    ['that go on', always(1, HALF_HOUR), `0+0x14 0 9+2x${HALF_HOUR}`, ['PayoutsNotSent']],
  ];
  fires(
    rows.map(([name, epoch, tries, alerts]) => {
      const tried = of7('payouts_not_sent_total', tries, ',cause="other"');
      return [name, [...UP, of7('payouts_lease_epoch', epoch), tried], alerts];
    }),
  );
});

describe('held payouts', () => {
  const HELD = ['PayoutsHeld'];
  const rows: readonly (readonly [string, number, readonly string[], number?])[] = [
    ['signature', 0, HELD],
    ['journal', 0, HELD],
    ['refuse', 0, HELD],
    // At once for what a person must mend.
    ['refuse', 0, HELD, 1],
    ['approve', 3, []],
    ['approve', 5, ['PayoutsHeldTooLong']],
    // A cool-down or office hours: its time has not come.
    ['wait', 0, []],
    ['wait', 3, ['PayoutsHeldTooLong']],
  ];
  fires(
    rows.map(([kind, overdueHours, alerts, minutes = HALF_HOUR]) => {
      const labels = `,rule="a",kind="${kind}"`;
      const overdue = of7('payouts_held_overdue_seconds', always(overdueHours * 3_600), labels);
      const held = of7('payouts_held', since(`1+0x${minutes}`), labels);
      return [`by ${kind}, ${overdueHours} h over their time`, [...UP, held, overdue], alerts, minutes];
    }),
  );
});

describe('a slow gateway', () => {
  const answers = (slow: number): InputSeries[] =>
    [
      ['2.5', 60 - slow],
      ['10', 60],
      ['+Inf', 60],
    ].map(([le, perMinute]) => {
      const values = `0+${perMinute ?? 0}x${MINUTES_BEFORE + HALF_HOUR}`;
      return of7('payouts_gateway_request_seconds_bucket', values, `,endpoint="withdraw",le="${le ?? ''}"`);
    });
  const rows: readonly Case[] = [
    ['that answers in 2 s', answers(0), []],
    ['with one slow answer in ten', answers(6), []],
    ['that answers in 10 s', answers(60), ['PayoutsGatewaySlow']],
    [
      'that does not answer',
      [of7('payouts_gateway_oldest_open_seconds', always(40), ',endpoint="withdraw"')],
      ['PayoutsGatewaySlow'],
    ],
  ];
  fires(rows.map(([name, found, alerts]) => [name, [...UP, ...found], alerts]));
});

describe('an exporter', () => {
  const exporter = of7('payouts_exporter_info', untilGone, ',exporter="notify"');
  fires([
    ['that was there and is not any more', [...UP, exporter], ['PayoutsExporterMissing']],
    ['that never was', UP, []],
  ]);
});

describe('a policy', () => {
  const info = (hash: string, values: string): InputSeries => of7('payouts_policy_info', values, `,hash="${hash}"`);
  const gauge = (name: string, value: number, labels = ''): InputSeries[] => [
    of7(name, `0+0x14 ${value}+0x${HALF_HOUR}`, labels),
  ];
  const rows: readonly Case[] = [
    ['81 % used', gauge('payouts_policy_usage_ratio', 0.81, ',rule="day"'), ['PayoutsPolicyNearlyUsed']],
    ['80 % used', gauge('payouts_policy_usage_ratio', 0.8, ',rule="day"'), []],
    ['rates of more than 15 minutes', gauge('payouts_rate_age_seconds', 901), ['PayoutsRatesStale']],
    ['younger rates', gauge('payouts_rate_age_seconds', 600), []],
    ['unreadable', gauge('payouts_policy_reload_failed', 1), ['PayoutsPolicyReloadFailed']],
    ['changed', [info('a', untilGone), info('b', since(`1+0x${HALF_HOUR}`))], ['PayoutsPolicyChanged']],
    ['the first of a worker', [info('a', since(`1+0x${HALF_HOUR}`))], []],
  ];
  fires(rows.map(([name, found, alerts]) => [name, [...UP, ...found], alerts]));
});

describe('keys', () => {
  const DAY_S = 86_400;
  const WALL_AT = Date.parse('2030-01-31T09:00:00Z') / 1_000;
  const RUNS = 'payouts_build_info{version="1"} 1\n';

  /** A keyring that was read. */
  const read = (...keys: readonly KeyEntry[]): Parameters<ReturnType<typeof createKeyGauges>>[0] => ({
    ...{ keys: keyringOf(...keys).keys, reloadTrouble: undefined },
  });

  async function expectOf(before: string, text: string, alerts: readonly string[], from = text): Promise<void> {
    const scrapes = [before, from, text].map((each, second) => at(second, RUNS + each, WALL_AT + second));
    const [first, then, now] = scrapes as [Snapshot, Snapshot, Snapshot];
    const found = extrapolate({ before: first, since: then, now }, HOUR);
    expect(await judgeAlerts(found, HOUR, alerts)).toBeUndefined();
  }

  it.each<[string, number, readonly string[], Partial<KeyEntry>?]>([
    ['in more than 14 days', 14 * DAY_S + 7_200, []],
    ['in 14 days', 14 * DAY_S, ['PayoutsKeyExpires']],
    ['now', 0, ['PayoutsKeyExpires']],
    ['yesterday', -DAY_S - 3_600, []],
    ['soon, but is revoked', DAY_S, [], { revoked: true }],
  ])('that end %s', async (_, endsInS, alerts, changes = {}) => {
    const registry = new Registry();
    const shop = keyEntry(testKey(1), { notAfter: new Date((WALL_AT + endsInS) * 1_000).toISOString(), ...changes });
    createKeyGauges(registry)(read(shop, keyEntry(testKey(2), { name: 'ann', role: 'operator' })));
    const text = await registry.metrics();
    await expectOf(text, text, alerts);
  });

  it('have a gauge where they end, until another keyring is read', async () => {
    const registry = new Registry();
    const set = createKeyGauges(registry);
    set(read(keyEntry(testKey(1))));
    expect(await registry.metrics()).not.toContain('{key=');
    set(read(keyEntry(testKey(1), { notAfter: '2030-02-01T00:00:00Z' })));
    expect(await registry.metrics()).toContain('{key="shop",role="producer"} 1896134400');
    set(undefined);
    expect(await registry.metrics()).not.toContain('shop');
    set({ keys: [], reloadTrouble: 'is no YAML' });
    await expectOf('', await registry.metrics(), ['PayoutsKeysReloadFailed']);
  });

  it.each<[reason: string, isTampering: boolean]>([
    ...['fields', 'bad_signature', 'wrong_role', 'sent_before', 'resume'].map((why): [string, boolean] => [why, true]),
    ['unsigned', false],
    ['expired', false],
  ])('that refuse a signature as %s tell of tampering at the first time: %j', async (reason, isTampering) => {
    const metrics = createWorkerMetrics({ version: '1' });
    const observer = metrics.observe(7);
    const text = async () => metrics.registry.getSingleMetricAsString('payouts_signature_failures_total');
    const before = await text();
    observer.signatureRefused(reason, isTampering);
    await expectOf(before, await text(), isTampering ? ['PayoutsTampering'] : []);
  });
});

describe('accounts of several processes', () => {
  /** What the one process of a group reports in these minutes: it has one account. */
  const group = (instance: string, platformId: number, minutes: string): InputSeries[] => [
    series('payouts_build_info', minutes, 'version="1"', instance),
    series('payouts_lease_held', minutes, `platform_id="${platformId}"`, instance),
  ];
  const back = (afterMinutes: number, minutes = HOUR): string => `${untilGone} _x${afterMinutes} ${always(1, minutes)}`;
  const moved = `_x${MINUTES_BEFORE + 1} ${always(1)}`;
  const a = group('a', 1, always(1));

  const groups: readonly Case[] = [
    ['that none reports any more', [...a, ...group('b', 2, untilGone)], ['PayoutsNoSender']],
    ['that another reports', [...a, ...group('b', 2, untilGone), ...group('c', 2, moved)], []],
    ['that is back within two minutes', [...a, ...group('b', 2, back(1))], []],
    ['none of which is reported', [...group('a', 1, untilGone), ...group('b', 2, untilGone)], ['PayoutsWorkerMissing']],
    // Until then nothing runs; then the other group comes back, with its account alone.
    [
      'that was last reported 23 hours ago',
      [...group('a', 1, back(23 * HOUR)), ...group('b', 2, untilGone)],
      ['PayoutsNoSender', 'PayoutsWorkerMissing'],
      25 * HOUR,
    ],
    [
      'that was last reported 25 hours ago',
      [...group('a', 1, back(25 * HOUR)), ...group('b', 2, untilGone)],
      ['PayoutsWorkerMissing'],
      27 * HOUR,
    ],
  ];

  /** Two that share an account: the one that rests says only that it does not send. */
  const shared = (...leases: readonly [number, number]): InputSeries[] =>
    leases.flatMap((lease, index) => {
      const host = `host-${index}`;
      const says = { build_info: 1, redis_up: 1, sending_refused: 0, lease_held: lease };
      return Object.entries(says).map(([name, value]) => of7(`payouts_${name}`, always(value), '', host));
    });
  /** What the ledger says of an account with a backlog that is sent. */
  const backlog = [
    of7('payouts_due', always(100), '', 'host-0'),
    of7('payouts_paused', always(0), '', 'host-0'),
    of7('payouts_in_state', always(0), ',state="unknown"', 'host-0'),
    of7('payouts_oldest_age_seconds', always(60), ',state="queued"', 'host-0'),
    of7('payouts_balance', always(5), ',currency="BTC"', 'host-0'),
    of7('payouts_balance_needed', always(4), ',currency="BTC"', 'host-0'),
    of7('payouts_sends_total', always(0), ',outcome="accepted"', 'host-1'),
  ];
  const sends = (values: string): InputSeries => of7('payouts_sends_total', values, ',outcome="accepted"', 'host-0');

  const pairs: readonly Case[] = [
    ['of which one works and one rests', [...shared(1, 0), ...backlog, sends(`0+60x${MINUTES_BEFORE + HOUR}`)], []],
    ['whose backlog stands still', [...shared(1, 0), ...backlog, sends(always(60))], ['PayoutsStandStill']],
    ['for which both rest', shared(0, 0), ['PayoutsNoSender']],
  ];
  fires([...groups, ...pairs], HOUR);

  it('that moved three days ago do not tell of their late payments of before once more', async () => {
    const days = 3 * 24 * HOUR;
    const found = [
      of7('payouts_build_info', `1+0x${2 * days}`, '', 'host-0'),
      of7('payouts_late_payments', `1+0x${HALF_HOUR - 1} stale`, '', 'host-0'),
      of7('payouts_late_payments', `_x${HALF_HOUR + 2} 1+0x${2 * days}`, '', 'host-1'),
    ];
    expect(await judgeAlerts(found, days + HOUR, [], [], days + 10)).toBeUndefined();
  }, 180_000);
});

describe('a process that was started again', () => {
  const RESTARTS = ['PayoutsProcessRestarts'];
  const others = [
    series('payouts_build_info', always(1, 2 * HOUR), 'version="1"', 'other'),
    series('payouts_lease_held', always(1, 2 * HOUR), 'platform_id="1"', 'other'),
  ];
  const startTimes = (values: readonly (number | undefined)[], instance = 'a'): InputSeries =>
    series('payouts_process_start_time_seconds', values.map((value) => value ?? 'stale').join(' '), '', instance);
  /** Started at these minutes, each start another value. */
  const startedAt = (starts: readonly number[], instance?: string): InputSeries => {
    const minutes = Array.from({ length: 2 * HOUR + 1 }, (_, minute) => minute);
    return startTimes(
      minutes.map((minute) => starts.filter((start) => start <= minute).length),
      instance,
    );
  };

  const rows: readonly Case[] = [
    ['four times', [startedAt([20, 25, 30, 35])], RESTARTS],
    ['three times', [startedAt([20, 21, 22])], []],
    ['every ten minutes', [startedAt([20, 30, 40, 50, 60, 70, 80])], []],
    ['with others that are deployed together', ['a', 'b', 'c', 'd', 'e'].map((name) => startedAt([20], name)), []],
  ];
  fires(
    rows.map(([name, found, alerts]) => [name, [...others, ...found], alerts]),
    2 * HOUR,
  );

  /** Each process of `payouts worker --processes` runs for this time: the start time that is read once a minute. */
  async function readEachMinute(ranMs: number, minutes: number): Promise<(number | undefined)[]> {
    const clock = new ManualClock();
    let started: number | undefined;
    const start = (): PoolProcess => {
      started = clock.now();
      const child = Object.assign(new EventEmitter(), { pid: 1, connected: false, kill: () => true, send: () => true });
      void clock.sleep(ranMs).then(() => {
        started = undefined;
        child.emit('exit', 1, null);
      });
      return child;
    };
    void new ProcessPool(1, start, clock, silentLogger).run(new AbortController().signal);
    const read: (number | undefined)[] = [];
    for (let minute = 0; minute <= minutes; minute += 1) {
      await clock.advance(60_000);
      read.push(started);
    }
    return read;
  }

  it.each<[number, readonly string[]]>([
    [65_000, RESTARTS],
    [120_000, RESTARTS],
    [600_000, []],
  ])('by --processes each %d ms: %j, also hours later', async (ranMs, alerts) => {
    const read = await readEachMinute(ranMs, 5 * HOUR);
    for (const values of [read.slice(0, 2 * HOUR), read.slice(-2 * HOUR)])
      expect(await judgeAlerts([...others, startTimes(values)], 2 * HOUR, alerts)).toBeUndefined();
  });
});
