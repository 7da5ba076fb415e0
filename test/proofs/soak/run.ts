/** Hours at the real pace, while workers and Redis fail: `npm run soak -- --help`. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exitOnSignals, print, runCommand, wholeNumber } from '../command-line.js';
import { drawSoak } from './draw-soak.js';
import { runSoak, type SoakResult } from './soak.js';

const USAGE = `npm run soak -- [--hours H] [--seed SEED] [--out DIR]

Sends payouts at the real interval, with network jitter, through three workers on one Redis. Every two to four minutes a worker
is killed, stopped for longer than its lease, or ended in good order; every ten to twenty Redis is killed and started again.
Retention removes old payouts meanwhile. Then the faults end, everything has to drain, and the gateway's book is held against the
three promises. Settings are the defaults. Memory, file descriptors and gaps are sampled twice a minute.

  --hours H     for how long, such as 4 or 0.2 (1)
  --seed SEED   decides which faults strike (1)
  --out DIR     for samples.jsonl, summary.json, soak.svg and, where something failed, the logs (reports/soak)
`;

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: 'reports/soak' },
    help: { type: 'boolean', default: false },
  },
});

const HOUR_MS = 3_600_000;

async function main(): Promise<boolean> {
  if (!/^\d{1,3}(\.\d{1,3})?$/.test(values.hours) || Number(values.hours) === 0) {
    throw new Error(`--hours must be a number such as 4 or 0.2 (got ${values.hours})\n${USAGE}`);
  }
  const seed = wholeNumber(values.seed, USAGE);
  const out = resolve(values.out);
  await mkdir(out, { recursive: true });
  const dir = await mkdtemp(join(tmpdir(), 'payouts-soak-'));
  const result = await runSoak({ durationMs: Number(values.hours) * HOUR_MS, seed, dir, out, note: print });
  await writeFile(join(out, 'soak.svg'), drawSoak(result));
  await writeFile(join(out, 'summary.json'), `${JSON.stringify(summarise(result), null, 2)}\n`);
  for (const [name, value] of Object.entries(summarise(result))) print(`${name.padEnd(18)} ${JSON.stringify(value)}`);
  for (const text of result.broken) print(`FAILED  ${text}`);
  if (result.broken.length === 0) await rm(dir, { recursive: true, force: true });
  else print(`logs: ${dir}`);
  print(result.broken.length === 0 ? '1 passed, 0 failed' : '0 passed, 1 failed');
  return result.broken.length === 0;
}

function summarise({ hours, payouts, states, withdrawals, smallestGapMs, ...rest }: SoakResult): object {
  const { oldRemoved, rssMb, fileDescriptors, marks, broken } = rest;
  return {
    ...{ hours, payouts, states, withdrawals, smallestGapMs, oldRemoved, rssMb, fileDescriptors },
    ...{ mishaps: marks.length, broken: broken.length },
  };
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
