import { parseArgs } from 'node:util';
import { print, runCommand, wholeNumber } from '../command-line.js';
import { soundPieces, type Pieces } from '../../world/worker.js';
import { runTasks, serveTasks } from '../task-pool.js';
import { mistakes } from '../simulation/planted/mistakes.js';
import { jest, program, runPlanted as runInCopy } from '../planted-source.js';
import { explore, listBranches, type Bounds, type Branch, type Exploration, type Finding } from './explorer.js';
import { LATE_AND_STOPPED, LOST_AND_OLDER, ONE, PLANTED, type Planted } from './planted.js';
import { runScenario } from './run-scenario.js';
import { SCENARIOS, scenarioOf } from './scenario.js';
import { DEVIATION_KINDS, type DeviationKind, type Schedule } from './schedule.js';

const USAGE = `npm run explore                                    every pass: see PASSES in test/proofs/explore/run.ts
npm run explore -- --scenario NAME --deviations N [--kinds hold,stop,…] [--focused] [--pruned] [--first]
                                                   one scenario under every schedule of N deviations; with --pruned, of
                                                   moments that differ in time only the first stands for all
npm run explore -- --scenario NAME --schedule JSON prints every step of one run
npm run explore -- --planted [NAME]                plants mistakes: each has to be found
scenarios: ${Object.keys(SCENARIOS).join(', ')}
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scenario: { type: 'string' },
    deviations: { type: 'string', default: '1' },
    kinds: { type: 'string', default: DEVIATION_KINDS.join(',') },
    focused: { type: 'boolean', default: false },
    pruned: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
    schedule: { type: 'string' },
    planted: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const SHOWN_FINDINGS = 5;
const PROGRAM = { url: import.meta.url, run: exploreBranch };

/** Every single deviation everywhere, and the pairs by which two timelines meet. */
const PASSES: readonly (readonly [title: string, bounds: Bounds, scenarios: readonly string[]])[] = [
  ['one deviation', ONE, Object.keys(SCENARIOS)],
  ['lost and older', LOST_AND_OLDER, ['slow', 'epochs']],
  ['held and stopped', LATE_AND_STOPPED, ['slow']],
];

interface BranchTask {
  readonly scenario: string;
  readonly bounds: Bounds;
  readonly branch?: Branch | undefined;
  readonly stopAtFirst: boolean;
  readonly planted?: string | undefined;
}

async function exploreBranch({ scenario, bounds, planted, ...options }: BranchTask): Promise<Exploration> {
  return explore(scenarioOf(scenario), bounds, { ...options, pieces: piecesWith(planted) });
}

function piecesWith(planted: string | undefined): Pieces {
  return { ...soundPieces, ...mistakes.find(({ name }) => name === planted)?.pieces };
}

async function main(): Promise<boolean> {
  if (values.planted) return runPlanted(positionals.join(' '));
  if (values.scenario === undefined) return runPasses();
  if (values.schedule !== undefined) return trace(values.scenario, JSON.parse(values.schedule) as Schedule);
  const kinds = values.kinds.split(',') as DeviationKind[];
  const unknown = kinds.find((kind) => !DEVIATION_KINDS.includes(kind));
  if (unknown !== undefined) throw new Error(`There is no deviation ${unknown}\n${USAGE}`);
  const deviations = wholeNumber(values.deviations, USAGE);
  return run(values.scenario, { deviations, kinds, isFocused: values.focused, isPruned: values.pruned });
}

async function runPasses(): Promise<boolean> {
  // One that prunes is a single task: it takes one processor, and the others run beside it.
  const held = await Promise.all([true, false].map(runInTurn));
  const passed = held.flat().filter(Boolean).length;
  print(`${passed} passed, ${held.flat().length - passed} failed`);
  return passed === held.flat().length;
}

async function runInTurn(isPruned: boolean): Promise<boolean[]> {
  const held: boolean[] = [];
  for (const [title, bounds, scenarios] of PASSES.filter(([, bounds]) => bounds.isPruned === isPruned)) {
    for (const name of scenarios) held.push(await run(name, bounds, title));
  }
  return held;
}

async function run(name: string, bounds: Bounds, title = ''): Promise<boolean> {
  const startedAt = performance.now();
  const { runs, findings } = await exploreInParallel({ scenario: name, bounds, stopAtFirst: values.first });
  const seconds = (performance.now() - startedAt) / 1_000;
  const pace = `${runs} schedules in ${seconds.toFixed(1)} s (${Math.round(runs / seconds)}/s)`;
  const extent = `${bounds.isPruned ? 'pruned' : 'all'} to ${bounds.deviations}`;
  print(`${title.padEnd(17)} ${name.padEnd(17)} ${extent}: ${pace}, ${findings.length} break a promise`);
  for (const { broken, schedule, run: number } of findings.slice(0, SHOWN_FINDINGS)) {
    print(`    run ${number}: ${broken}`);
    print(`      to repeat it: npm run explore -- --scenario ${name} --schedule '${JSON.stringify(schedule)}'`);
  }
  return findings.length === 0;
}

async function exploreInParallel(task: BranchTask): Promise<Exploration> {
  const { scenario, bounds, stopAtFirst, planted } = task;
  const findings: Finding[] = [];
  let runs = 0;
  const root = { ...task, bounds: { ...bounds, deviations: 0 } };
  const branches = bounds.isPruned ? [] : await listBranches(scenarioOf(scenario), bounds, piecesWith(planted));
  // What one branch has explored, the others leave out where that is pruned: they stay together.
  const tasks = bounds.isPruned ? [task] : [root, ...branches.map((branch) => ({ ...task, branch }))];
  const isOver = (): boolean => stopAtFirst && findings.length > 0;
  await runTasks(PROGRAM, takeUntil(tasks, isOver), (explored) => {
    findings.push(...explored.findings.map((finding) => ({ ...finding, run: runs + finding.run })));
    runs += explored.runs;
  });
  return { runs, findings };
}

function* takeUntil<Task>(tasks: readonly Task[], isOver: () => boolean): Generator<Task> {
  for (const task of tasks) {
    if (isOver()) return;
    yield task;
  }
}

async function runPlanted(name: string): Promise<boolean> {
  const chosen = PLANTED.filter((planted) => name === '' || planted.name === name);
  if (chosen.length === 0) throw new Error(`There is no mistake named ${name}`);
  let missed = 0;
  for (const planted of chosen) {
    const startedAt = performance.now();
    const found = await findPlanted(planted);
    if (found === undefined) missed += 1;
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
    print(`${planted.name.padEnd(56)} ${seconds.padStart(4)} s  ${found ?? 'NOT FOUND'}`);
  }
  print(`${chosen.length - missed} passed, ${missed} failed`);
  return missed === 0;
}

async function findPlanted(planted: Planted): Promise<string | undefined> {
  if ('test' in planted) return /✕ .*/.exec(await runInCopy(planted.plant, jest(planted.test)))?.[0];
  const { name, plant, scenario, bounds } = planted;
  if ('file' in plant) {
    const { deviations, kinds, isFocused, isPruned } = bounds;
    const flags = ['--first', ...(isFocused ? ['--focused'] : []), ...(isPruned ? ['--pruned'] : [])];
    const extent = ['--scenario', scenario, '--deviations', `${deviations}`, '--kinds', kinds.join(',')];
    return /run \d+: .*/.exec(await runInCopy(plant, program('test/proofs/explore/run.ts', ...flags, ...extent)))?.[0];
  }
  const [first] = (await exploreInParallel({ scenario, bounds, planted: name, stopAtFirst: true })).findings;
  return first && `run ${first.run}: ${first.broken}`;
}

async function trace(scenario: string, schedule: Schedule): Promise<boolean> {
  const outcome = await runScenario(scenarioOf(scenario), schedule, { tracing: true });
  print(outcome.trace.join('\n'));
  print(outcome.broken ?? 'every promise was kept');
  return outcome.broken === undefined;
}

if (process.send !== undefined) serveTasks(exploreBranch);
else await runCommand(main, USAGE, values.help);
