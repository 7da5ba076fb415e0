import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

type AlertRule = Readonly<{
  alert: string;
  expr: string;
  labels: Readonly<{ severity: string }>;
  annotations: Readonly<{ summary: string; action: string; runbook: string }>;
}>;

const ALERTS_PATH = fileURLToPath(new URL('../../docs/alerts.yml', import.meta.url));

const RECORDING_PATH = fileURLToPath(new URL('../../docs/recording-rules.yml', import.meta.url));

const { groups } = parse(readFileSync(ALERTS_PATH, 'utf8')) as { groups: { rules: AlertRule[] }[] };

export const alertRules: readonly AlertRule[] = groups.flatMap(({ rules }) => rules);

type RecordingRule = Readonly<Record<'record' | 'expr', string>>;

export const recordingRules = (
  parse(readFileSync(RECORDING_PATH, 'utf8')) as { groups: { rules: RecordingRule[] }[] }
).groups.flatMap(({ rules }) => rules);

export type Snapshot = Readonly<{
  at: number;
  /** Seconds since 1970, for gauges that are times. @defaultValue 0 */
  wallAt?: number;
  scrapes: readonly Readonly<{ instance: string; text: string }>[];
}>;

/** During the fault, counters continue as fast as they rose from `since` to `now`. */
type Observation = Readonly<Record<'before' | 'since' | 'now', Snapshot>>;

/** As `promtool test rules` takes it, one value a minute. */
export type InputSeries = Readonly<Record<'series' | 'values', string>>;

/** For this long all was as in the first scrape. */
export const MINUTES_BEFORE = 15;

/** Gauges that are times. Simulated time begins with 1970. */
const TIME = /_timestamp_seconds$/;
/** Gauges that grow by themselves for as long as nothing changes. */
const AGE = /^payouts_(oldest_age|rate_age|held_overdue|sender_heartbeat_age)_seconds$/;

/** What is scraped when a fault lasts: counters continue as fast as they rose, ages grow, other gauges stay. */
export function extrapolate({ before, since, now }: Observation, minutes: number) {
  const [old, first, last] = [readSamples(before), readSamples(since), readSamples(now)];
  const betweenMinutes = (now.at - since.at) / 60;
  const agoS = (now.wallAt ?? 0) - MINUTES_BEFORE * 60;
  return [...new Set([...old.keys(), ...last.keys()])].map((series) => {
    const beforeIt = shift(old.get(series), agoS);
    const start = beforeIt === undefined ? `_x${MINUTES_BEFORE}` : `${beforeIt.value}+0x${MINUTES_BEFORE - 1}`;
    const sample = shift(last.get(series), agoS);
    if (sample === undefined) return { series, values: `${start} stale` };
    const { name, type, value } = sample;
    const change = value - (first.get(series)?.value ?? value);
    const rise = AGE.test(name) ? 60 : type === 'gauge' ? 0 : change / betweenMinutes;
    return { series, values: `${start} ${value}+${change > 0 ? rise : 0}x${minutes}` };
  });
}

export const shift = (sample: Sample | undefined, agoS: number) =>
  sample && TIME.test(sample.name) ? { ...sample, value: sample.value - agoS } : sample;

type Sample = Readonly<{ name: string; type: string; value: number }>;

export function readSamples({ scrapes }: Snapshot) {
  return new Map(scrapes.flatMap(({ instance, text }) => [...readText(instance, text)]));
}

/** Prometheus adds to each series what it was scraped from. */
function* readText(instance: string, text: string): Generator<[string, Sample]> {
  let type = '';
  for (const line of text.split('\n')) {
    type = /^# TYPE \S+ (\S+)$/.exec(line)?.[1] ?? type;
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const all = [...(labels === '' ? [] : [labels]), `instance="${instance}"`, 'job="payouts"'];
    yield [`${name}{${all.join(',')}}`, { name, type, value: Number(value) }];
  }
}

type AlertQuestion = Readonly<{
  series: readonly InputSeries[];
  /** After {@link MINUTES_BEFORE}. */
  minutes: number;
  alerts: readonly string[];
  ignored?: readonly string[];
}>;

/**
 * Has promtool evaluate docs/alerts.yml once a minute over the series. One run for all, as it takes long to start.
 * @returns for each what promtool says against it, or undefined
 */
export async function judgeMany(questions: readonly AlertQuestion[]) {
  const tests = questions.map(({ series, minutes, alerts, ignored }) => {
    const totalS = (MINUTES_BEFORE + minutes) * 60;
    return toTest(series, 60, totalS, [fire(alerts, totalS + 60, ignored)]);
  });
  if ((await runPromtool(tests)) === undefined) return questions.map(() => undefined);
  return Promise.all(tests.map(async (test) => runPromtool([test])));
}

export async function judgeAlerts(question: AlertQuestion) {
  return (await judgeMany([question]))[0];
}

/** Whether exactly these alerts fire over series with a value every so many seconds. */
export async function judgeEvery(
  everyS: number,
  { series, totalS, alerts }: Readonly<{ series: readonly InputSeries[]; totalS: number; alerts: readonly string[] }>,
) {
  return runPromtool([toTest(series, everyS, totalS, [fire(alerts, totalS + everyS)])], everyS);
}

/** Whether each of these alerts fires with the same labels in every minute, from a minute before the time. */
export async function firesThroughout(series: readonly InputSeries[], minutes: number, alerts: readonly string[]) {
  const expectations = alerts.map((alertname): Expectation => {
    const firing = `ALERTS{alertstate="firing",alertname="${alertname}"}[${minutes + 1}m]`;
    return [`count by (alertname) (count_over_time(${firing}) > ${minutes})`, [alertname]];
  });
  return runPromtool([toTest(series, 60, (MINUTES_BEFORE + minutes) * 60, expectations)]);
}

/** Whether the query of an alert has this value for the account, at the end of so many minutes. */
export async function judgeValue(series: readonly InputSeries[], minutes: number, alert: string, value: number) {
  const { expr = '' } = alertRules.find((rule) => rule.alert === alert) ?? {};
  const eval_time = `${MINUTES_BEFORE + minutes}m`;
  const [platformId] = series.flatMap((each) => /platform_id="(\d+)"/.exec(each.series)?.[1] ?? []);
  const exp_samples = [{ labels: `{platform_id="${platformId}"}`, value }];
  return runPromtool([{ interval: '1m', input_series: series, promql_expr_test: [{ expr, eval_time, exp_samples }] }]);
}

/**
 * Whether a query has this value for account 7, and none for undefined, so many minutes after the series began.
 */
export async function judgeRecorded(
  series: readonly InputSeries[],
  minutes: number,
  expr: string,
  value: number | undefined,
) {
  const labels = `${/^[\w:]+$/.test(expr) ? expr : ''}{platform_id="7"}`;
  const exp_samples = value === undefined ? [] : [{ labels, value }];
  const promql_expr_test = [{ expr, eval_time: `${minutes}m`, exp_samples }];
  return runPromtool([{ interval: '1m', input_series: series, promql_expr_test }], 60, RECORDING_PATH);
}

type Expectation = readonly [expr: string, alerts: readonly string[]];

function fire(alerts: readonly string[], withinS: number, ignored: readonly string[] = []): Expectation {
  const others = ignored.filter((alertname) => !alerts.includes(alertname)).join('|');
  const firing = `ALERTS{alertstate="firing",alertname!~"${others}"}[${withinS}s]`;
  return [`max by (alertname) (max_over_time(${firing}))`, alerts];
}

function toTest(
  series: readonly InputSeries[],
  everyS: number,
  totalS: number,
  expectations: readonly Expectation[],
): object {
  const promql = expectations.map(([expr, alerts]) => ({
    expr,
    eval_time: `${totalS}s`,
    exp_samples: alerts.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
  }));
  return { interval: `${everyS}s`, input_series: series, promql_expr_test: promql };
}

async function runPromtool(tests: readonly object[], everyS = 60, rules = ALERTS_PATH) {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-alerts-'));
  const path = join(dir, 'test.yml');
  // JSON is YAML.
  await writeFile(path, JSON.stringify({ rule_files: [rules], evaluation_interval: `${everyS}s`, tests }));
  try {
    return await new Promise<string | undefined>((resolve, reject) => {
      execFile('promtool', ['test', 'rules', path], (error, stdout, stderr) => {
        if (error?.code === 'ENOENT') reject(new Error('no promtool: run `node scripts/setup.mjs --with-promtool`'));
        else resolve(error === null ? undefined : `${stdout}${stderr}`);
      });
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
