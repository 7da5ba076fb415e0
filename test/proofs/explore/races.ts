import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { print, runCommand, wholeNumber, runTasks, FLAG, TEXT, report, secondsSince } from '../command-line.js';
import { orderings, type OrderingsOptions } from './orderings.js';

const USAGE = `npm run races                                       runs all proofs, each with the number of runs that is named below
npm run races -- --only PROOF [--runs N]            runs one: orderings (10000), orderings-in-redis (1000)
npm run races -- --only PROOF --seed S --path P     repeats a failure
`;

type Task = Readonly<{
  name: string;
  runs: number | undefined;
  repeated: Readonly<{ seed?: number; path?: string }>;
}>;

type Proof = readonly [runs: number, makeRig: OrderingsOptions['makeRig']];

const PROOFS = new Map<string, Proof>([
  ['orderings', [10_000, () => makeWorldRig()]],
  ['orderings-in-redis', [1_000, makeRedisRig]],
]);

function proofOf(name: string): Proof {
  const proof = PROOFS.get(name);
  if (proof === undefined) throw new Error(`There is no proof named ${name}\n${USAGE}`);
  return proof;
}

async function main() {
  const { only, runs, seed, path } = values;
  // What the ledger does is looked at here, not what outlives a crash, so nothing has to reach the disk.
  const redis =
    process.env['REDIS_URL'] === undefined ? await startLocalRedis({ args: ['--appendonly', 'no'] }) : undefined;
  if (redis !== undefined) process.env['REDIS_URL'] = redis.url;
  const names = only === undefined ? [...PROOFS.keys()] : [only];
  names.forEach(proofOf);
  const repeated = { ...(seed && { seed: Number(seed) }), ...(path && { path, endOnFailure: true }) };
  const tasks = names.map((name) => ({ name, runs: runs === undefined ? runs : wholeNumber(runs, USAGE), repeated }));
  let [passed, failed] = [0, 0];
  try {
    await runTasks({ url: import.meta.url, run: prove }, tasks, (result) => {
      passed += result.passed;
      failed += result.failed;
    });
  } finally {
    await redis?.stop();
  }
  return report(passed, failed);
}

async function prove(task: Task): Promise<Readonly<{ passed: number; failed: number }>> {
  const [runs, makeRig] = proofOf(task.name);
  const startedAt = performance.now();
  const counts = { begun: 0, paid: 0 };
  const details = await fc.check(orderings(counts, { makeRig }), { numRuns: task.runs ?? runs, ...task.repeated });
  const seconds = secondsSince(startedAt).toFixed(1);
  if (details.failed) explain(task.name, details);
  const failed = details.failed ? 1 : 0;
  const passed = details.numRuns - failed;
  print(`${task.name}: ${passed} in ${seconds} s, in which ${counts.begun} sends began (seed ${details.seed})`);
  return { passed, failed };
}

function explain(name: string, details: fc.RunDetails<[unknown, unknown]>) {
  const { seed, counterexample, counterexamplePath, errorInstance, numShrinks } = details;
  print(`${name}: FAILED, made ${numShrinks} times smaller`);
  print(`plan: ${JSON.stringify(counterexample?.[0])}`);
  print(errorInstance instanceof Error ? errorInstance.message : String(errorInstance));
  print(`  to repeat it: npm run races -- --only ${name} --seed ${seed} --path ${counterexamplePath ?? ''}`);
}

const { values } = parseArgs({
  options: { only: TEXT, runs: TEXT, seed: TEXT, path: TEXT, help: FLAG },
});
await runCommand(main, USAGE, values.help, prove);
