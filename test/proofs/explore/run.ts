import { parseArgs } from 'node:util';
import type { Pieces } from '../../world/worker.js';
import {
  checkChanges,
  FLAG,
  jest,
  plantEach,
  print,
  program,
  report,
  runCommand,
  runInCopy,
  runTasks,
  secondsSince,
  type SourceChange,
  TEXT,
  wholeNumber,
} from '../command-line.js';
import { mistakes, plant } from '../simulation/planted/mistakes.js';
import {
  type Bounds,
  type Branch,
  type Exploration,
  explore,
  type Finding,
  listBranches,
  runScenario,
} from './explorer.js';
import { DEVIATION_KINDS, scenarioOf, SCENARIOS, type Schedule } from './scenario.js';

type Planted = { readonly name: string } & (
  | Readonly<{ pieces: Partial<Pieces>; scenario: string; bounds: Bounds }>
  | Readonly<{ plant: SourceChange; pass: string }>
  | Readonly<{ plant: SourceChange; test: string }>
);

const ONE = { deviations: 1, kinds: DEVIATION_KINDS, isFocused: false, isPruned: false };
const LOST_AND_OLDER = { ...ONE, deviations: 2, kinds: ['lose', 'rollback'] } as const;
const LATE_AND_STOPPED = { deviations: 2, kinds: ['hold', 'stop'], isFocused: true, isPruned: true } as const;

const SENDER = 'worker/sender/sender.ts';
const LEDGER_TEST = 'test/ledger/redis-sender-ledger.test.ts';

type ByTest = readonly [name: string, test: string, file: string, ...edits: SourceChange['edits']];

const PLACE = {
  lease: ['test/worker/sender/lease-keeper.test.ts', 'worker/sender/lease-keeper.ts'],
  sender: ['test/worker/sender/sender.test.ts', SENDER],
} as const;

/** Nothing of the like happens in the scenarios: a test was written for each. */
const FOUND_BY_TESTS: readonly ByTest[] = [
  [
    'awaitingAnswer read before the lease is taken',
    ...PLACE.lease,
    ['{ lease: before }', '{ lease: before, awaitingAnswer }'],
    ['(view, before', '({ ...view, awaitingAnswer }, before'],
  ],
  [
    'hold-off counted from before the lease is taken',
    ...PLACE.lease,
    ['epoch }, view', 'epoch }, view, askedAt'],
    ['before }: SenderView', 'before }: SenderView, askedAt: number'],
    ['wonAt = clock.now()', 'wonAt = askedAt'],
  ],
  ['pacer not told of sends without a response', ...PLACE.sender, ['pacer.afterNoResponse()', 'pacer.afterResponse()']],
  [
    'no allowance for clocks that run faster',
    'test/worker/sender/sender-begin.test.ts',
    'worker/sender/pacer.ts',
    ['onAnyClock(this.#pace.inFlightMaxMs)', 'this.#pace.inFlightMaxMs'],
  ],
  ['awaitingAnswer flag ignored on take-over', ...PLACE.lease, ['awaitingAnswer ?', 'false ?']],
  [
    'lease by expiry',
    ...PLACE.lease,
    [
      'askedAt = clock.now();\n        const view = await senderLedger.readSender();',
      'askedAt = clock.wallNow();\n        const view = await senderLedger.readSender();',
    ],
    [': clock.now()', ': clock.wallNow()'],
  ],
  ['absent lease is free', ...PLACE.lease, ['view.lease?.released === true', 'view.lease?.released !== false']],
  [
    'a send that waits for a disk that hangs, and is then written',
    'test/worker/sender/sender-journal.test.ts',
    SENDER,
    ['return await this.#notSent(attempt, (error as Error).message, errorCode(error));', 'hasOthers = false;'],
  ],
  ['attempt identified by its epoch', ...PLACE.sender, ['makeToken() }', '`e${this.#heldLease.lease.epoch}` }']],
  [
    'send known by the number of its attempt',
    LEDGER_TEST,
    'ledger/lua/prelude/attempts.lua',
    ['if word == token then return true end', 'if word ~= FORGOTTEN then return true end'],
  ],
  [
    'stale count of sends accepted, and the journal not asked',
    LEDGER_TEST,
    'ledger/lua/begin-send.lua',
    ['begun[1] ~= sends or begun[2] ~= last', 'false'],
  ],
  [
    'adoption by whatever journals are there',
    'test/operator/adoption.test.ts',
    'operator/adoption.ts',
    ['survey.unwitnessed : []', '[] : []'],
  ],
  [
    'not sent, stated while the request may be on its way',
    LEDGER_TEST,
    'ledger/lua/change-payouts.lua',
    ['waitMs > 0', 'false'],
  ],
  [
    'a statement about an earlier attempt',
    'test/ledger/change-payouts.test.ts',
    'ledger/lua/change-payouts.lua',
    ["attempt ~= '' and tonumber(attempt)", 'false and tonumber(attempt)'],
  ],
  [
    'a cancellation forgotten at adoption',
    'test/worker/sender/kept-acts.test.ts',
    'operator/adoption.ts',
    ['ledger.putBackEnded(ended, actor)', 'ledger.putBackEnded([], actor)'],
  ],
  [
    'a rejection that does not count',
    'test/control/policy-authority.test.ts',
    'control/worker/rejection-authority.ts',
    ['const [first] = standing;', 'const [first] = [] as typeof standing;'],
  ],
  [
    'a symbol valued by the coin',
    'test/control/symbol.test.ts',
    'control/policy/usd-rates.ts',
    ['if (symbol === undefined) return', 'if (own !== undefined) return'],
  ],
];

const BY_TESTS = FOUND_BY_TESTS.map(([name, test, file, ...edits]) => ({ name, test, plant: { file, edits } }));

const ELSEWHERE: Readonly<Record<string, Readonly<{ scenario: string; bounds: Bounds }>>> = {
  'pacing from the send instead of the response': { scenario: 'plain', bounds: { ...ONE, kinds: ['hold'] } },
  'no heartbeat during quarantine': { scenario: 'short-lease', bounds: { ...ONE, kinds: ['hold', 'stop'] } },
};

const NOT_FOUND: ReadonlySet<string> = new Set([
  'journal read only at the start',
  // Of kernels and gateways that stand still: `npm run simulate -- --planted` finds them.
  'the network alone is waited for, not the kernel of a host that is cut off',
  'the wait for a request counts from its end, as if its process had to reset it',
  'a socket that is closed and not reset',
  'no interval after a probe',
]);

const BY_SCENARIO = Object.entries(mistakes)
  .filter(([name]) => !NOT_FOUND.has(name) && BY_TESTS.every((planted) => planted.name !== name))
  .map(([name, pieces]) => ({ name, pieces, scenario: 'slow', bounds: ONE, ...ELSEWHERE[name] }));

const BEGUN = 'if (refusal !== undefined) return refusal;\n      const { sendCount: sends }';

const PLANTED: readonly Planted[] = [
  {
    name: 'an attempt not released before its write',
    plant: { file: SENDER, edits: [['    this.#sends.release(attempt);\n', '']] },
    pass: 'lost and older',
  },
  {
    name: "guard counted from the begin's reply",
    plant: {
      file: SENDER,
      edits: [
        ['const beganAt =', 'let beganAt ='],
        ['const beganOn =', 'let beganOn ='],
        [BEGUN, BEGUN.replace('\n', '\n      [beganAt, beganOn] = [clock.now(), clock.wallNow()];\n')],
      ],
    },
    pass: 'held and stopped',
  },
  ...BY_SCENARIO,
  ...BY_TESTS,
];

const USAGE = `npm run explore                       every pass: see PASSES in test/proofs/explore/run.ts
npm run explore -- --scenario NAME    one scenario, with --pass 'lost and older', or every schedule of --deviations N;
                                      --first stops at the first that breaks a promise
npm run explore -- --scenario NAME --schedule JSON    prints every step of one run
npm run explore -- --planted [NAME]   plants mistakes: each has to be found
npm run explore -- --check            only whether the mistakes still fit the sources
scenarios: ${Object.keys(SCENARIOS).join(', ')}
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ scenario: TEXT, schedule: TEXT, deviations: TEXT },
    ...{ pass: { ...TEXT, default: 'one deviation' }, first: FLAG, planted: FLAG, check: FLAG, help: FLAG },
  },
});

const SHOWN_FINDINGS = 5;
const PROGRAM = { url: import.meta.url, run: exploreBranch };

const PASSES: readonly (readonly [title: string, bounds: Bounds, scenarios: readonly string[]])[] = [
  ['one deviation', ONE, Object.keys(SCENARIOS)],
  ['lost and older', LOST_AND_OLDER, ['slow', 'epochs']],
  ['held and stopped', LATE_AND_STOPPED, ['slow']],
];

type BranchTask = Readonly<{
  scenario: string;
  bounds: Bounds;
  branch?: Branch | undefined;
  stopAtFirst: boolean;
  planted?: string | undefined;
}>;

async function exploreBranch({ scenario, bounds, planted, ...options }: BranchTask): Promise<Exploration> {
  return explore(scenarioOf(scenario), bounds, { ...options, pieces: plant(planted) });
}

async function main() {
  if (values.check) return checkChanges(PLANTED.flatMap((planted) => ('plant' in planted ? [planted.plant] : [])));
  if (values.planted) return runPlanted(positionals.join(' '));
  if (values.scenario === undefined) return runPasses();
  if (values.schedule !== undefined) return trace(values.scenario, JSON.parse(values.schedule) as Schedule);
  const pass = PASSES.find(([title]) => title === values.pass);
  if (pass === undefined) throw new Error(`There is no pass ${values.pass}`);
  const [title, bounds] = pass;
  const deviations = wholeNumber(values.deviations ?? String(bounds.deviations), USAGE);
  return run(values.scenario, { ...bounds, deviations }, title);
}

async function runPasses() {
  // One that prunes is a single task: it takes one processor, and the others run beside it.
  const held = await Promise.all([true, false].map(runInTurn));
  const passed = held.flat().filter(Boolean).length;
  return report(passed, held.flat().length - passed);
}

async function runInTurn(isPruned: boolean): Promise<boolean[]> {
  const held: boolean[] = [];
  for (const [title, bounds, scenarios] of PASSES.filter(([, bounds]) => bounds.isPruned === isPruned)) {
    for (const name of scenarios) held.push(await run(name, bounds, title));
  }
  return held;
}

async function run(name: string, bounds: Bounds, title = '') {
  const startedAt = performance.now();
  const { runs, findings } = await exploreInParallel({ scenario: name, bounds, stopAtFirst: values.first });
  const seconds = secondsSince(startedAt);
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
  const branches = bounds.isPruned ? [] : await listBranches(scenarioOf(scenario), bounds, plant(planted));
  // What one branch has explored, the others leave out where that is pruned: they stay together.
  const tasks = bounds.isPruned ? [task] : [root, ...branches.map((branch) => ({ ...task, branch }))];
  const isOver = () => stopAtFirst && findings.length > 0;
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

async function runPlanted(name: string) {
  const chosen = PLANTED.filter((planted) => name === '' || planted.name === name);
  if (chosen.length === 0) throw new Error(`There is no mistake named ${name}`);
  return plantEach(chosen, (planted) => planted.name, findPlanted);
}

async function findPlanted(planted: Planted) {
  if ('test' in planted) return /✕ .*/.exec(await runInCopy(planted.plant, jest(planted.test)))?.[0];
  if ('pass' in planted) {
    const args = ['--scenario', 'slow', '--pass', planted.pass, '--first'];
    return /run \d+: .*/.exec(await runInCopy(planted.plant, program('test/proofs/explore/run.ts', ...args)))?.[0];
  }
  const { name, scenario, bounds } = planted;
  const [first] = (await exploreInParallel({ scenario, bounds, planted: name, stopAtFirst: true })).findings;
  return first && `run ${first.run}: ${first.broken}`;
}

async function trace(scenario: string, schedule: Schedule) {
  const outcome = await runScenario(scenarioOf(scenario), schedule, { tracing: true });
  print(outcome.trace.join('\n'));
  print(outcome.broken ?? 'every promise was kept');
  return outcome.broken === undefined;
}

await runCommand(main, USAGE, values.help, exploreBranch);
