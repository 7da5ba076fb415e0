import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Random } from '../../doubles/random.js';
import { drawFault, HARMLESS, REAL, type Plan, type Stage } from '../chaos/plan.js';
import { runRound } from '../chaos/round.js';
import { exitOnSignals, print, runCommand, wholeNumber, FLAG, TEXT, report } from '../command-line.js';

const USAGE = `npm run soak -- [--hours H] [--seed SEED]

  --hours H     for how long, such as 4 or 0.2 (1)
  --seed SEED   decides which faults strike (1)
`;

const { values } = parseArgs({
  options: {
    ...{ hours: { ...TEXT, default: '1' }, seed: { ...TEXT, default: '1' }, help: FLAG },
  },
});

const MINUTE_MS = 60_000;
const PAYOUT_EVERY_MS = 1_200;
const GROWTH_ALLOWED_MB = 60;
const DESCRIPTORS_ALLOWED = 100;

function planSoak(durationMs: number): Plan {
  const seed = wholeNumber(values.seed, USAGE);
  const random = new Random(seed);
  const environment = { PAYOUT_RETENTION_DAYS: '1', HEALTH_PORT: '0' };
  // A worker that is stopped is so for longer than this, the default lease, most of the time.
  const timing = { ...REAL, leaseMs: 10_000, chaosMs: durationMs, environment };
  const faults: Plan['faults'][number][] = [];
  for (let atMs = random.between(2, 4) * MINUTE_MS; atMs < durationMs; atMs += random.between(2, 4) * MINUTE_MS) {
    faults.push(drawFault(random.pick(HARMLESS), Math.round(atMs), timing, random));
  }
  const payouts = Math.ceil(durationMs / PAYOUT_EVERY_MS);
  return {
    ...{ seed, api: 'v1', timing, faults, signed: false, sharedJournal: true, forgets: false },
    ...{ maxUnknownsInARow: 99, pauseAtMs: Infinity, forgetsKey: false, orderIdKnownAfterMs: 0 },
    enqueueAtMs: Array.from({ length: payouts }, (_, index) => index * PAYOUT_EVERY_MS - 10_000),
  };
}

async function main() {
  const hours = Number(values.hours);
  if (!(hours > 0)) throw new Error(`--hours must be a number such as 4 or 0.2\n${USAGE}`);
  const dir = await mkdtemp(join(tmpdir(), 'payouts-soak-'));
  const plan = planSoak(hours * 60 * MINUTE_MS);
  const samples: Sample[] = [];
  const sample = async ({ hosts }: Stage) => {
    for (const { pid } of hosts) samples.push(await sampleProcess(pid));
  };
  let timer: NodeJS.Timeout | undefined;
  const { broken, trace, ...found } = await runRound(plan, dir, (stage) => {
    timer = setInterval(() => void sample(stage).catch(() => undefined), MINUTE_MS / 2);
  });
  clearInterval(timer);
  const failures = [...broken, ...findGrowth(samples)];
  const rssMb = [samples[0]?.rssMb, samples.at(-1)?.rssMb];
  print(JSON.stringify({ hours, mishaps: plan.faults.length, ...found, rssMb, broken: failures.length }));
  for (const text of failures.length > 0 ? [...trace, ...failures.map((each) => `FAILED  ${each}`)] : []) print(text);
  if (failures.length === 0) await rm(dir, { recursive: true, force: true });
  else print(`logs: ${dir}`);
  const passed = failures.length === 0 ? 1 : 0;
  return report(passed, 1 - passed);
}

type Sample = Awaited<ReturnType<typeof sampleProcess>>;

async function sampleProcess(pid = 0) {
  const pages = Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]);
  const rssMb = Math.round((pages * 4_096) / 104_857.6) / 10;
  return { pid, rssMb, fileDescriptors: (await readdir(`/proc/${pid}/fd`)).length };
}

function findGrowth(samples: readonly Sample[]) {
  return [...new Set(samples.map(({ pid }) => pid))].flatMap((pid) => {
    const own = samples.filter((each) => each.pid === pid);
    const settled = own.slice(Math.floor(own.length / 10));
    const growthMb = (settled.at(-1)?.rssMb ?? 0) - (settled[0]?.rssMb ?? 0);
    const most = Math.max(...own.map(({ fileDescriptors }) => fileDescriptors));
    return [
      ...(growthMb > GROWTH_ALLOWED_MB ? [`the memory of process ${pid} grew by ${growthMb.toFixed(1)} MB`] : []),
      ...(most > DESCRIPTORS_ALLOWED ? [`process ${pid} had ${most} file descriptors`] : []),
    ];
  });
}

exitOnSignals();
await runCommand(main, USAGE, values.help);
