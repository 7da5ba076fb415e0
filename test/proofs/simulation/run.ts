import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FLAG, print, report, runCommand, runTasks, secondsSince, TEXT, wholeNumber } from '../command-line.js';
import { policyMistakes, signedMistakes } from './planted/control-mistakes.js';
import { janitorMistakes } from './planted/janitor-mistakes.js';
import { mistakes, plant } from './planted/mistakes.js';
import { replicaMistakes } from './planted/replica-mistakes.js';
import { type RunOptions, runSeed } from './simulation.js';
import {
  POLICED_SITUATIONS,
  REPLICATED_SITUATIONS,
  SIGNED_SITUATIONS,
  type Situation,
  SITUATIONS,
} from './situations.js';

const USAGE = `npm run simulate -- [--seeds N] [--from S]             runs N seeds (20000) from S (1) on; each has to keep every promise
npm run simulate -- --planted [NAME] [--seeds N] [--from S]  plants mistakes; each has to be caught within N seeds (10000)
npm run simulate -- --signed [--seeds N] [--from S]    the same with signed payouts, and someone who writes to Redis
npm run simulate -- --policed [--seeds N] [--from S]   the same with a policy, whose cap must hold at the gateway
npm run simulate -- --replicated [--seeds N] [--from S] the same with replicas of Redis, and failovers that forget
npm run simulate -- --trace --from S [--signed | --policed | --replicated] [--planted NAME]  prints every step of one run
npm run simulate -- --trace-hash [--seeds N] [--from S]  one hash a mode over all steps of N seeds (200): a change of no rule keeps it
`;

const SEEDS_PER_SITUATION = 1_000;
const SEEDS_PER_TASK = 200;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ seeds: TEXT, from: { ...TEXT, default: '1' } },
    ...{ planted: FLAG, signed: FLAG, policed: FLAG, replicated: FLAG, trace: FLAG, 'trace-hash': FLAG, help: FLAG },
  },
});
const { signed, policed, replicated } = values;
const name = positionals.join(' ');

interface SeedRange extends Pick<RunOptions, 'signed' | 'policed' | 'replicated'> {
  readonly from: number;
  readonly seeds: number;
  readonly planted?: string;
  readonly tracing?: boolean;
}

type RangeResult = Readonly<{
  broken: readonly Readonly<{ seed: number; broken: string }>[];
  arrivals: number;
  situations: readonly Situation[];
  /** A SHA-256 of each seed's steps, if they are traced. */
  traces: readonly string[];
}>;

const PROGRAM = { url: import.meta.url, run: runSeeds };

const PLAIN = { ...mistakes, ...janitorMistakes };
const ALL = { ...PLAIN, ...signedMistakes, ...policyMistakes, ...replicaMistakes };

async function runSeeds({ from, seeds, planted, ...mode }: SeedRange): Promise<RangeResult> {
  const options = { pieces: plant(planted, ALL), ...mode };
  const result = { broken: [] as { seed: number; broken: string }[], arrivals: 0 };
  const situations: Situation[] = [];
  const traces: string[] = [];
  for (let seed = from; seed < from + seeds && (planted === undefined || result.broken.length === 0); seed += 1) {
    // Without it, nothing that was collected is ever given free.
    await nextTurn();
    const run = await runSeed(seed, options);
    result.arrivals += run.arrivals;
    situations.push(...run.situations);
    if (mode.tracing === true) traces.push(sha256([...run.trace, String(run.broken)]));
    if (run.broken !== undefined) result.broken.push({ seed, broken: run.broken });
  }
  return { ...result, situations, traces };
}

function sha256(lines: readonly string[]) {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

async function main() {
  const from = wholeNumber(values.from, USAGE);
  if (values.trace) return trace(from);
  if (values['trace-hash']) return hashTraces(from, wholeNumber(values.seeds ?? '200', USAGE));
  if (values.planted) return runPlanted(from, wholeNumber(values.seeds ?? '10000', USAGE));
  return runAll(from, wholeNumber(values.seeds ?? '20000', USAGE));
}

async function runAll(from: number, seeds: number) {
  const startedAt = performance.now();
  let arrivals = 0;
  const broken: RangeResult['broken'][number][] = [];
  const met = new Map<Situation, number>();
  await runTasks(PROGRAM, divide(from, seeds), (result) => {
    arrivals += result.arrivals;
    broken.push(...result.broken);
    for (const situation of result.situations) met.set(situation, (met.get(situation) ?? 0) + 1);
  });
  const seconds = secondsSince(startedAt);
  const flags = `${signed ? ' --signed' : ''}${policed ? ' --policed' : ''}${replicated ? ' --replicated' : ''}`;
  for (const { seed, broken: promise } of broken) {
    print(`seed ${seed}: ${promise}\n  to repeat it: npm run simulate -- --trace --from ${seed}${flags}`);
  }
  print(`${arrivals} withdrawals reached the gateway`);
  const isSampled = printSituations(met, seeds);
  print(`${seeds} seeds in ${seconds.toFixed(1)} s: ${Math.round(seeds / seconds)} seeds/s`);
  return report(seeds - broken.length, broken.length) && isSampled;
}

function* divide(from: number, seeds: number): Generator<SeedRange> {
  for (let first = from; first < from + seeds; first += SEEDS_PER_TASK) {
    yield { from: first, seeds: Math.min(SEEDS_PER_TASK, from + seeds - first), signed, policed, replicated };
  }
}

function printSituations(met: ReadonlyMap<Situation, number>, seeds: number) {
  const wanted = Math.floor(seeds / SEEDS_PER_SITUATION);
  const common = replicated ? REPLICATED_SITUATIONS : SITUATIONS;
  const situations = [...common, ...(signed ? SIGNED_SITUATIONS : []), ...(policed ? POLICED_SITUATIONS : [])];
  print('runs that came into a situation:');
  for (const situation of situations) {
    const count = met.get(situation) ?? 0;
    print(`  ${String(count).padStart(7)}  ${situation}${count < wanted ? `  TOO FEW: ${wanted} are wanted` : ''}`);
  }
  return situations.every((situation) => (met.get(situation) ?? 0) >= wanted);
}

async function runPlanted(from: number, seeds: number) {
  let missed = 0;
  const tasks = [
    ...Object.keys(signed ? {} : PLAIN).map((planted) => ({ from, seeds, planted })),
    ...Object.keys(signedMistakes).map((planted) => ({ from, seeds, planted, signed: true })),
    ...Object.keys(policyMistakes).map((planted) => ({ from, seeds, planted, policed: true })),
    ...Object.keys(replicaMistakes).map((planted) => ({ from, seeds, planted, replicated: true })),
  ].filter(({ planted }) => name === '' || planted === name);
  if (tasks.length === 0) throw new Error(`There is no mistake named ${name}`);
  await runTasks(PROGRAM, tasks, ({ broken: [caught] }, { planted }) => {
    if (caught === undefined) missed += 1;
    const verdict = caught === undefined ? `NOT CAUGHT in ${seeds} seeds` : `${caught.seed - from + 1} seeds`;
    print(`${planted.padEnd(56)} ${verdict.padEnd(12)} ${caught?.broken ?? ''}`);
  });
  return report(tasks.length - missed, missed);
}

async function trace(seed: number) {
  const pieces = plant(values.planted ? name : undefined, ALL);
  const { trace: steps, broken } = await runSeed(seed, { tracing: true, signed, policed, replicated, pieces });
  print(steps.join('\n'));
  print(broken ?? 'every promise was kept');
  return broken === undefined;
}

const MODES = [
  { mode: 'plain' },
  { mode: 'signed', signed: true },
  { mode: 'policed', policed: true },
  { mode: 'replicated', replicated: true },
] as const;

async function hashTraces(from: number, seeds: number) {
  const bySeed = new Map<string, readonly string[]>(MODES.map(({ mode }) => [mode, []]));
  // One seed a task: results come in any order, and a seed's place is its task's.
  const tasks = MODES.flatMap(({ mode, ...flags }) =>
    Array.from({ length: seeds }, (_, place) => ({
      mode,
      place,
      from: from + place,
      seeds: 1,
      tracing: true,
      ...flags,
    })),
  );
  await runTasks(PROGRAM, tasks, ({ traces: [hash = ''] }, { mode, place }) => {
    bySeed.set(mode, [...(bySeed.get(mode) ?? []), `${String(place).padStart(9)} ${hash}`]);
  });
  for (const [mode, hashes] of bySeed) print(`${mode.padEnd(10)} ${sha256([...hashes].sort())}`);
  return true;
}

await runCommand(main, USAGE, values.help, runSeeds);
