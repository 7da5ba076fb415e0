import { fork } from 'node:child_process';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { ledgerSequences } from '../../ledger/support/ledger-sequences.js';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { print, runCommand, wholeNumber } from '../command-line.js';
import { orderings, type OrderingsCounts } from './orderings.js';

const USAGE = `npm run races                                       runs all proofs, each with the number of runs that is named below
npm run races -- --only PROOF [--runs N]            runs one: orderings (10000), orderings-in-redis (1000), sequences (5000)
npm run races -- --only PROOF --seed S --path P     repeats a failure; for sequences also with --replay R
`;

const { values } = parseArgs({
  options: {
    ...{ only: { type: 'string' }, runs: { type: 'string' }, seed: { type: 'string' } },
    ...{ path: { type: 'string' }, replay: { type: 'string' }, help: { type: 'boolean', default: false } },
  },
});

interface Proof {
  readonly runs: number;
  readonly property: (counts: OrderingsCounts) => fc.IAsyncProperty<[unknown, unknown]>;
}

const PROOFS: Readonly<Record<string, Proof>> = {
  orderings: { runs: 10_000, property: (counts) => orderings(counts, { makeRig: () => makeWorldRig() }) },
  'orderings-in-redis': { runs: 1_000, property: (counts) => orderings(counts, { makeRig: makeRedisRig }) },
  sequences: { runs: 5_000, property: (counts) => ledgerSequences(counts, values.replay) },
};

/** What one proof came to. */
interface Result {
  readonly passed: number;
  readonly failed: number;
}

async function main(): Promise<boolean> {
  const { only } = values;
  // What the ledger does is looked at here, not what outlives a crash, so nothing has to reach the disk.
  const redis =
    process.env['REDIS_URL'] === undefined ? await startLocalRedis({ args: ['--appendonly', 'no'] }) : undefined;
  if (redis !== undefined) process.env['REDIS_URL'] = redis.url;
  try {
    const results = only === undefined ? await runAll() : [await run(only)];
    if (process.send !== undefined) return process.send(results[0]);
    const sum = (count: keyof Result): number => results.reduce((total, result) => total + result[count], 0);
    print(`${sum('passed')} passed, ${sum('failed')} failed`);
    return sum('failed') === 0;
  } finally {
    await redis?.stop();
  }
}

/** The sequences, which take as long as all orderings, have a process of their own. */
async function runAll(): Promise<Result[]> {
  const sequences = new Promise<Result>((resolve, reject) => {
    const child = fork(process.argv[1] ?? '', ['--only', 'sequences']);
    child.once('message', (result) => {
      resolve(result as Result);
    });
    child.once('exit', () => {
      reject(new Error('the process of the sequences ended without a result'));
    });
  });
  const [one, other] = await Promise.all([sequences, run('orderings')]);
  return [one, other, await run('orderings-in-redis')];
}

async function run(name: string): Promise<Result> {
  const proof = PROOFS[name];
  if (proof === undefined) throw new Error(`There is no proof named ${name}\n${USAGE}`);
  const { runs = String(proof.runs), seed, path } = values;
  const startedAt = performance.now();
  const counts = { begun: 0, paid: 0 };
  const details = await fc.check(proof.property(counts), {
    numRuns: wholeNumber(runs, USAGE),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path, endOnFailure: true }),
  });
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  if (details.failed) explain(name, details);
  const failed = details.failed ? 1 : 0;
  const passed = details.numRuns - failed;
  print(`${name}: ${passed} in ${seconds} s, in which ${counts.begun} sends began (seed ${details.seed})`);
  return { passed, failed };
}

/** The error of an ordering ends with all that happened in it, that of a sequence names the commands. */
function explain(name: string, details: fc.RunDetails<[unknown, unknown]>): void {
  const { seed, counterexample, counterexamplePath, errorInstance, numShrinks } = details;
  const [first, second] = counterexample ?? [];
  print(`${name}: FAILED, made ${numShrinks} times smaller`);
  print(name === 'sequences' ? `commands: ${String(first)} then ${String(second)}` : `plan: ${JSON.stringify(first)}`);
  print(errorInstance instanceof Error ? errorInstance.message : String(errorInstance));
  const [, replay] = /replayPath="([^"]+)"/.exec(String(second)) ?? [];
  const more = replay === undefined ? '' : ` --replay ${replay}`;
  print(`  to repeat it: npm run races -- --only ${name} --seed ${seed} --path ${counterexamplePath ?? ''}${more}`);
}

await runCommand(main, USAGE, values.help);
