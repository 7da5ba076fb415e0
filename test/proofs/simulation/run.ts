import { parseArgs } from 'node:util';
import { print, runCommand, wholeNumber } from '../command-line.js';
import { runTasks } from '../task-pool.js';
import { soundPieces } from '../../world/worker.js';
import { mistakes, policyMistakes, signedMistakes } from './planted/index.js';
import { runSeeds, type BrokenSeed, type SeedRange } from './seeds.js';
import { runSeed } from './simulation.js';
import { POLICED_SITUATIONS, SIGNED_SITUATIONS, SITUATIONS, type Situation } from './situations.js';

const USAGE = `npm run simulate -- [--seeds N] [--from S]             runs N seeds (20000) from S (1) on; each has to keep every promise
npm run simulate -- --planted [--seeds N] [--from S]   plants mistakes; each has to be caught within N seeds (10000)
npm run simulate -- --signed [--seeds N] [--from S]    the same with signed payouts, and someone who writes to Redis
npm run simulate -- --policed [--seeds N] [--from S]   the same with a policy, whose cap must hold at the gateway
npm run simulate -- --trace --from S [--signed | --policed] [--planted NAME]  prints every step of one run
`;

/** A failing run is printed whole, so more of them would bury the first. */
const SHOWN_FAILURES = 3;
/** A situation that fewer runs come into is not tested by chance. */
const SEEDS_PER_SITUATION = 1_000;
const PROGRESS_EVERY_MS = 10_000;
/** Seconds of work: what the slower child still does at the end is short. */
const SEEDS_PER_TASK = 200;
const PROGRAM = { url: import.meta.resolve('./seeds-child.ts'), run: runSeeds };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    planted: { type: 'boolean', default: false },
    signed: { type: 'boolean', default: false },
    policed: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** What is simulated beside the sender. */
const mode = { signed: values.signed, policed: values.policed };

async function main(): Promise<boolean> {
  const from = wholeNumber(values.from, USAGE);
  if (values.trace) return trace(from);
  if (values.planted) return runPlanted(from, wholeNumber(values.seeds ?? '10000', USAGE));
  return runAll(from, wholeNumber(values.seeds ?? '20000', USAGE));
}

async function runAll(from: number, seeds: number): Promise<boolean> {
  const startedAt = performance.now();
  let shownAt = startedAt;
  let done = 0;
  let arrivals = 0;
  let virtualMs = 0;
  const broken: BrokenSeed[] = [];
  const met = new Map<Situation, number>();
  await runTasks(PROGRAM, divide(from, seeds), (result, range) => {
    done += range.seeds;
    arrivals += result.arrivals;
    virtualMs += result.virtualMs;
    broken.push(...result.broken);
    for (const [situation, count] of result.situations) met.set(situation, (met.get(situation) ?? 0) + count);
    if (performance.now() - shownAt < PROGRESS_EVERY_MS) return;
    shownAt = performance.now();
    process.stderr.write(`${done} of ${seeds} seeds, ${broken.length} failed\n`);
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  for (const [index, failure] of broken.entries()) await explain(failure, index < SHOWN_FAILURES);
  print(`${arrivals} withdrawals reached the gateway in ${(virtualMs / 3_600_000).toFixed(1)} simulated hours`);
  const isSampled = printSituations(met, seeds);
  print(`${seeds} seeds in ${seconds.toFixed(1)} s: ${Math.round(seeds / seconds)} seeds/s`);
  print(`${seeds - broken.length} passed, ${broken.length} failed`);
  return broken.length === 0 && isSampled;
}

function* divide(from: number, seeds: number): Generator<SeedRange> {
  for (let first = from; first < from + seeds; first += SEEDS_PER_TASK) {
    yield { from: first, seeds: Math.min(SEEDS_PER_TASK, from + seeds - first), ...mode };
  }
}

/** @returns whether enough runs came into every situation */
function printSituations(met: ReadonlyMap<Situation, number>, seeds: number): boolean {
  const wanted = Math.floor(seeds / SEEDS_PER_SITUATION);
  print('runs that came into a situation:');
  const situations = [
    ...SITUATIONS,
    ...(values.signed ? SIGNED_SITUATIONS : []),
    ...(values.policed ? POLICED_SITUATIONS : []),
  ];
  for (const situation of situations) {
    const count = met.get(situation) ?? 0;
    print(`  ${String(count).padStart(7)}  ${situation}${count < wanted ? `  TOO FEW: ${wanted} are wanted` : ''}`);
  }
  return situations.every((situation) => (met.get(situation) ?? 0) >= wanted);
}

async function explain({ seed, broken }: BrokenSeed, whole: boolean): Promise<void> {
  print(`seed ${seed}: ${broken}`);
  print(
    `  to repeat it: npm run simulate -- --trace --from ${seed}${values.signed ? ' --signed' : ''}${values.policed ? ' --policed' : ''}`,
  );
  if (whole) print((await runSeed(seed, { tracing: true, ...mode })).trace.join('\n'));
}

async function runPlanted(from: number, seeds: number): Promise<boolean> {
  let missed = 0;
  const tasks = [
    ...(values.signed ? [] : mistakes).map(({ name }): SeedRange => ({ from, seeds, planted: name })),
    ...signedMistakes.map(({ name }): SeedRange => ({ from, seeds, planted: name, signed: true })),
    ...policyMistakes.map(({ name }): SeedRange => ({ from, seeds, planted: name, policed: true })),
  ];
  await runTasks(PROGRAM, tasks, ({ broken: [caught] }, { planted = '' }) => {
    if (caught === undefined) missed += 1;
    const verdict = caught === undefined ? `NOT CAUGHT in ${seeds} seeds` : `${caught.seed - from + 1} seeds`;
    print(`${planted.padEnd(56)} ${verdict.padEnd(12)} ${caught?.broken ?? ''}`);
  });
  print(`${tasks.length - missed} passed, ${missed} failed`);
  return missed === 0;
}

async function trace(seed: number): Promise<boolean> {
  const name = values.planted ? positionals.join(' ') : undefined;
  const mistake = [...mistakes, ...signedMistakes, ...policyMistakes].find((candidate) => candidate.name === name);
  if (name !== undefined && mistake === undefined) throw new Error(`There is no mistake named ${name}`);
  const result = await runSeed(seed, {
    tracing: true,
    ...mode,
    pieces: { ...soundPieces, ...mistake?.pieces },
  });
  print(result.trace.join('\n'));
  print(result.broken ?? 'every promise was kept');
  return result.broken === undefined;
}

await runCommand(main, USAGE, values.help);
