import { parseArgs } from 'node:util';
import { print, runCommand, wholeNumber } from '../command-line.js';
import { runTasks } from '../task-pool.js';
import { exploreBranch, piecesWith, type BranchTask } from './branch.js';
import { listBranches, type Bounds, type Exploration, type Finding } from './explorer.js';
import { PLANTED, type Planted } from './planted.js';
import { jest, program, runPlanted as runInCopy, type SourceChange } from '../planted-source.js';
import { runScenario } from './run-scenario.js';
import { SCENARIOS, scenarioOf, type Scenario } from './scenario.js';
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

/** A finding is printed with its schedule, so more of them would bury the first. */
const SHOWN_FINDINGS = 5;
const PROGRAM = { url: import.meta.resolve('./branch.ts'), run: exploreBranch };

interface Pass {
  readonly title: string;
  readonly bounds: Bounds;
  readonly scenarios: readonly string[];
}

/** Every single deviation everywhere, and the pairs by which two timelines meet. */
const PASSES: readonly Pass[] = [
  {
    title: 'one deviation',
    bounds: { deviations: 1, kinds: DEVIATION_KINDS, isFocused: false, isPruned: false },
    scenarios: Object.keys(SCENARIOS),
  },
  {
    title: 'lost and older',
    bounds: { deviations: 2, kinds: ['lose', 'rollback'], isFocused: false, isPruned: false },
    scenarios: ['slow', 'epochs'],
  },
  {
    title: 'held and stopped',
    bounds: { deviations: 2, kinds: ['hold', 'stop'], isFocused: true, isPruned: true },
    scenarios: ['slow'],
  },
];

async function main(): Promise<boolean> {
  if (values.planted) return runPlanted(positionals.join(' '));
  if (values.scenario === undefined) return runPasses();
  const scenario = scenarioOf(values.scenario);
  if (values.schedule !== undefined) return trace(scenario, JSON.parse(values.schedule) as Schedule);
  const kinds = values.kinds.split(',') as DeviationKind[];
  const unknown = kinds.find((kind) => !DEVIATION_KINDS.includes(kind));
  if (unknown !== undefined) throw new Error(`There is no deviation ${unknown}\n${USAGE}`);
  const deviations = wholeNumber(values.deviations, USAGE);
  return run(values.scenario, { deviations, kinds, isFocused: values.focused, isPruned: values.pruned });
}

async function runPasses(): Promise<boolean> {
  // One that prunes is a single task: it takes one processor, and the others run beside it.
  const [pruned, whole] = await Promise.all([
    runInTurn(PASSES.filter(({ bounds }) => bounds.isPruned)),
    runInTurn(PASSES.filter(({ bounds }) => !bounds.isPruned)),
  ]);
  const held = [...pruned, ...whole];
  const passed = held.filter(Boolean).length;
  print(`${passed} passed, ${held.length - passed} failed`);
  return passed === held.length;
}

/** @returns of each scenario of each pass, whether every promise was kept */
async function runInTurn(passes: readonly Pass[]): Promise<boolean[]> {
  const held: boolean[] = [];
  for (const { title, bounds, scenarios } of passes) {
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
  for (const finding of findings.slice(0, SHOWN_FINDINGS)) explain(name, finding);
  return findings.length === 0;
}

/** Explores each branch of the first deviation in one of several processes. */
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

function explain(name: string, { broken, schedule, run: number }: Finding): void {
  print(`    run ${number}: ${broken}`);
  print(`      to repeat it: npm run explore -- --scenario ${name} --schedule '${JSON.stringify(schedule)}'`);
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

/** @returns what was found, and after how many runs */
async function findPlanted(planted: Planted): Promise<string | undefined> {
  if ('test' in planted) return findByTest(planted.plant, planted.test);
  const { name, plant, scenario, bounds } = planted;
  if ('file' in plant) return findInCopy(plant, scenario, bounds);
  const { findings } = await exploreInParallel({ scenario, bounds, planted: name, stopAtFirst: true });
  const [first] = findings;
  return first && `run ${first.run}: ${first.broken}`;
}

async function findInCopy(
  change: SourceChange,
  scenario: string,
  { deviations, kinds, isFocused, isPruned }: Bounds,
): Promise<string | undefined> {
  const bounds = ['--deviations', `${deviations}`, '--kinds', kinds.join(',')];
  const flags = [...(isFocused ? ['--focused'] : []), ...(isPruned ? ['--pruned'] : [])];
  const args = program('test/proofs/explore/run.ts', '--first', '--scenario', scenario, ...bounds, ...flags);
  return /run \d+: .*/.exec(await runInCopy(change, args))?.[0];
}

async function findByTest(change: SourceChange, test: string): Promise<string | undefined> {
  return /✕ .*/.exec(await runInCopy(change, jest(test)))?.[0];
}

async function trace(scenario: Scenario, schedule: Schedule): Promise<boolean> {
  const outcome = await runScenario(scenario, schedule, { tracing: true });
  print(outcome.trace.join('\n'));
  print(outcome.broken ?? 'every promise was kept');
  return outcome.broken === undefined;
}

await runCommand(main, USAGE, values.help);
