import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exitOnSignals, print, runCommand, wholeNumber } from '../proofs/command-line.js';
import { judgeSilence, readSamples, shift, type InputSeries } from '../told/alerts.js';
import { runHealthySystem, SCRAPE_EVERY_MS, type HealthyScrape } from './healthy-system.js';

const USAGE = `Runs a healthy system with examples/policy.yaml and evaluates the alert rules over all that it was scraped to say.

  --minutes M       for how long (60)
  --out DIR         for scrapes.jsonl, keys and journal; must not exist (reports/healthy-hour)
  --evaluate DIR    evaluates the scrapes of an earlier run, and runs nothing
  --rules FILE      rules other than docs/alerts.yml
`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    out: { type: 'string', default: 'reports/healthy-hour' },
    evaluate: { type: 'string' },
    rules: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<boolean> {
  const dir = resolve(values.evaluate ?? values.out);
  const broken = values.evaluate === undefined ? await run(dir) : [];
  const lines = (await readFile(join(dir, 'scrapes.jsonl'), 'utf8')).trim().split('\n');
  const scrapes = lines.map((line) => JSON.parse(line) as HealthyScrape);
  const notReady = scrapes.filter(({ readyz }) => !readyz.includes('"ready":true')).length;
  print(`${scrapes.length} scrapes over ${Math.round((scrapes.at(-1)?.at ?? 0) / 60)} minutes, ${notReady} not ready`);
  const everyS = SCRAPE_EVERY_MS / 1_000;
  const times = { everyS, totalS: (scrapes.length - 1) * everyS, rules: values.rules && resolve(values.rules) };
  const alerts = await judgeSilence(toSeries(scrapes), times);
  if (alerts !== undefined) broken.push(`an alert fires:\n${alerts}`);
  for (const text of broken) print(`FAILED  ${text}`);
  print(broken.length === 0 ? '1 passed, 0 failed' : '0 passed, 1 failed');
  return broken.length === 0;
}

async function run(dir: string): Promise<string[]> {
  const { enqueued, states, gateway } = await runHealthySystem(dir, wholeNumber(values.minutes, USAGE) * 60_000);
  const { arrivals, smallestGapMs, duplicatePayments, blocked } = gateway;
  const { completed, in_progress: inProgress, held } = states;
  print(JSON.stringify({ enqueued, completed, inProgress, held, arrivals, smallestGapMs }));
  const isKept = !blocked && duplicatePayments.length === 0 && completed + inProgress + held === enqueued;
  return isKept ? [] : [`not healthy: ${JSON.stringify({ states, blocked, duplicatePayments })}`];
}

/** A series that one scrape lacks is stale, as Prometheus marks it. */
function toSeries(scrapes: readonly HealthyScrape[]): InputSeries[] {
  const all = new Map<string, string[]>();
  const sinceS = scrapes[0]?.wallAt ?? 0;
  scrapes.forEach((scrape, turn) => {
    for (const [series, sample] of readSamples(scrape)) {
      const found = all.get(series) ?? [];
      const absent = Array.from({ length: turn - found.length }, () => (found.length === 0 ? '_' : 'stale'));
      all.set(series, [...found, ...absent, String(shift(sample, sinceS)?.value)]);
    }
  });
  return [...all].map(([series, found]) => {
    const end = found.length < scrapes.length ? ['stale'] : [];
    return { series, values: [...found, ...end].join(' ') };
  });
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
