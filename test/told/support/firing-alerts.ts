import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALERTS_PATH } from '../../docs/support/alert-rules.js';
import { MINUTES_BEFORE, type InputSeries } from './series.js';

/**
 * Has promtool evaluate docs/alerts.yml once a minute over the series.
 * @param ignored - alerts that may fire as well
 * @param fromMinute - what fires before does not count
 * @returns undefined when exactly these alerts fire at some time, else what promtool says
 * @throws Error when promtool is not installed
 */
export async function judgeAlerts(
  series: readonly InputSeries[],
  minutes: number,
  expected: readonly string[],
  ignored: readonly string[] = [],
  fromMinute = 0,
): Promise<string | undefined> {
  const total = MINUTES_BEFORE + minutes;
  return judgeSeries(series, { everyS: 60, totalS: total * 60, expected, ignored, fromS: fromMinute * 60 });
}

/** As {@link judgeAlerts}, of many at once in one run of promtool, which takes long to start. */
export async function judgeMany(
  cases: readonly {
    readonly series: readonly InputSeries[];
    readonly minutes: number;
    readonly alerts: readonly string[];
  }[],
): Promise<(string | undefined)[]> {
  const tests = cases.map(({ series, minutes, alerts }) => {
    const totalS = (MINUTES_BEFORE + minutes) * 60;
    return toTest(series, { everyS: 60, totalS }, [toExpectation({ everyS: 60, totalS, expected: alerts })]);
  });
  if ((await evaluate(tests, { everyS: 60 })) === undefined) return cases.map(() => undefined);
  return Promise.all(tests.map(async (test) => evaluate([test], { everyS: 60 })));
}

export interface AlertQuestion {
  /** Between two values of a series, and two evaluations. */
  readonly everyS: number;
  readonly totalS: number;
  /** What fires before does not count. */
  readonly fromS?: number;
  readonly expected: readonly string[];
  readonly ignored?: readonly string[];
  /** @defaultValue docs/alerts.yml */
  readonly rules?: string;
}

/** As {@link judgeAlerts}, of series in any step. */
export async function judgeSeries(
  series: readonly InputSeries[],
  question: AlertQuestion,
): Promise<string | undefined> {
  return evaluate([toTest(series, question, [toExpectation(question)])], question);
}

function toExpectation({ everyS, totalS, fromS = 0, expected, ignored = [] }: AlertQuestion): Expectation {
  const unexpected = ignored.filter((alertname) => !expected.includes(alertname)).join('|');
  const firing = `ALERTS{alertstate="firing",alertname!~"${unexpected}"}[${totalS + everyS - fromS}s]`;
  const expr = `max by (alertname) (max_over_time(${firing}))`;
  return [expr, expected.map((alertname) => [`{alertname="${alertname}"}`, 1])];
}

/**
 * @returns undefined when each of these alerts, with the same labels, fires in every minute of the time, from a minute
 * before it
 */
export async function firesThroughout(
  series: readonly InputSeries[],
  minutes: number,
  alerts: readonly string[],
): Promise<string | undefined> {
  const expectations = alerts.map((alertname): Expectation => {
    const expr = `count by (alertname) (count_over_time(ALERTS{alertstate="firing",alertname="${alertname}"}[${minutes + 1}m]) > ${minutes})`;
    return [expr, [[`{alertname="${alertname}"}`, 1]]];
  });
  const times = { everyS: 60, totalS: (MINUTES_BEFORE + minutes) * 60 };
  return evaluate([toTest(series, times, expectations)], times);
}

type Expectation = readonly [expr: string, samples: readonly (readonly [labels: string, value: number])[]];

function toTest(
  series: readonly InputSeries[],
  { everyS, totalS }: Pick<AlertQuestion, 'everyS' | 'totalS'>,
  expectations: readonly Expectation[],
): object {
  const promql = expectations.map(([expr, samples]) => ({
    expr,
    eval_time: `${totalS}s`,
    exp_samples: samples.map(([labels, value]) => ({ labels, value })),
  }));
  return { interval: `${everyS}s`, input_series: series, promql_expr_test: promql };
}

async function evaluate(
  tests: readonly object[],
  { everyS, rules = ALERTS_PATH }: Pick<AlertQuestion, 'everyS' | 'rules'>,
): Promise<string | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-alerts-'));
  const path = join(dir, 'test.yml');
  try {
    // JSON is YAML.
    await writeFile(path, JSON.stringify({ rule_files: [rules], evaluation_interval: `${everyS}s`, tests }));
    return await runPromtool('test', 'rules', path);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function runPromtool(...args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    execFile('promtool', args, (error, stdout, stderr) => {
      if (error === null) resolve(undefined);
      else if (error.code === 'ENOENT') {
        reject(new Error('promtool is not installed: run `node scripts/setup.mjs --with-promtool`'));
      } else resolve(`${stdout}${stderr}`);
    });
  });
}
