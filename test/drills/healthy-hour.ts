import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exitOnSignals, print, runCommand, wholeNumber } from '../proofs/command-line.js';
import { runHealthySystem } from './healthy-system.js';
import { judgeScrapes, readScrapes } from './judge-scrapes.js';

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
  const file = join(dir, 'scrapes.jsonl');
  const scrapes = await readScrapes(file);
  const notReady = scrapes.filter(({ readyz }) => !readyz.includes('"ready":true')).length;
  print(`${scrapes.length} scrapes over ${Math.round((scrapes.at(-1)?.at ?? 0) / 60)} minutes, ${notReady} not ready`);
  const alerts = await judgeScrapes(file, values.rules && resolve(values.rules));
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

exitOnSignals();
await runCommand(main, USAGE, values.help);
