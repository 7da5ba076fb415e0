import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FLAG, print, report, runCommand, secondsSince, TEXT, wholeNumber } from '../command-line.js';
import {
  check,
  type Checked,
  type Constants,
  MODELS,
  type ModelName,
  readModel,
  switchesOf,
  withConstants,
  withCoveredRules,
  withoutRules,
} from './checker.js';
import { type Bounds, writePage } from './page.js';
import { plant } from '../simulation/planted/mistakes.js';
import { replayWalks } from './replayed-walks.js';
import { crashTraces, exploredTraces } from './explored-traces.js';
import { simulatedTraces } from './simulated-traces.js';
import { findRefused, type Refusal, type Trace } from './traces.js';

const USAGE = `npm run model                                      searches each model to its end, within small bounds
npm run model -- --large                           the same within larger bounds
npm run model -- --without RULE [--trace]          without a rule or an assumption; --trace prints the counterexample
npm run model -- --rules                           what can be left out
npm run model -- --traces [--seeds N] [--from S] [--planted NAME]  compares N simulated runs (40) with the model; with a
                                                   planted mistake one of them must be refused
npm run model -- --traces --schedules N [--from S] [--planted NAME]  the same of N schedules of the exploration
npm run model -- --traces --crashes [--planted NAME]  the same of a worker that is killed before each of its steps
npm run model -- --walks N [--from S] [--planted NAME | --without RULE]  draws walks of the model, and has the real code take
                                                   each step, until N came to the same end; with a mistake in the code
                                                   or without a rule of the model one must differ
npm run model -- --page [--check]                  writes docs/model.md; --check compares it with what is found,
                                                   --quick without the rows in which nothing was found
`;

const { values } = parseArgs({
  options: {
    ...{
      schedules: TEXT,
      crashes: FLAG,
      traces: FLAG,
      seeds: { ...TEXT, default: '40' },
      from: { ...TEXT, default: '1' },
      planted: TEXT,
      walks: TEXT,
    },
    ...{ without: TEXT, large: FLAG, trace: FLAG, rules: FLAG, page: FLAG, check: FLAG, quick: FLAG, help: FLAG },
  },
});

interface Search {
  readonly model: ModelName;
  readonly name: string;
  readonly bounds: Constants;
  /** Rules that cannot fire; undefined: whether each fires is not looked at. */
  readonly idle?: RegExp;
}

/** Rules that fire only without a rule or an assumption. */
const ONLY_WITHOUT = /is stopped before it writes|goes on, and writes|another program|loses its journal/;
const OF_OWN_JOURNALS = /is lost after it objected/;
const OF_LOOKS = /the janitor|the gateway finds|the gateway does not find/;
/** Rules that need a Redis that comes back older. */
const OF_FALLS = /copy of Redis|comes back older|objects|adopts the ledger|begin came late/;

const OWN_JOURNALS = { SHARED: false };
/** Failovers to a replica forget no send, so that no journal is needed. */
const REPLICA = { SHARED: false, REPLICA: true, A5: false };

const SMALL: readonly Search[] = [
  {
    model: 'send',
    name: 'one journal for both hosts',
    bounds: { SENDS: 2 },
    idle: either(ONLY_WITHOUT, OF_OWN_JOURNALS, OF_LOOKS),
  },
  { model: 'send', name: 'a journal for each host', bounds: { SENDS: 2, ...OWN_JOURNALS } },
  {
    model: 'send',
    name: 'a host that is lost',
    bounds: { SENDS: 1, ...OWN_JOURNALS },
    idle: /^(?!.*is lost after it objected)/,
  },
  { model: 'send', name: 'a replica, and journals that are lost', bounds: { SENDS: 2, ...REPLICA } },
  {
    model: 'send',
    name: 'look-ups by order',
    bounds: { SENDS: 2, FALLS: 0, LOOKS: 2 },
    idle: either(ONLY_WITHOUT, OF_OWN_JOURNALS, OF_FALLS),
  },
  { model: 'pace', name: 'without an end', bounds: {}, idle: ONLY_WITHOUT },
];

/** What must be found: that "never lost" is not empty, and that a rule that never fires is reported. */
const TINY = { SENDS: 1, FALLS: 0 };
const CONTROLS: readonly (Readonly<{ name: string; finds: RegExp }> &
  Pick<Search, 'bounds' | 'idle'> & { without: RegExp })[] = [
  { name: 'no operator states anything', without: /an operator says/, finds: /never lost/, bounds: TINY },
  {
    name: 'no worker is killed',
    without: /is killed/,
    finds: /is killed" never fires/,
    bounds: TINY,
    idle: /^(?!.*is killed)/,
  },
];

/** Without a rule these find what there is to find, and end in minutes. */
const OF_PAGE: readonly Bounds[] = [
  { model: 'send', bounds: { SENDS: 2, KILLS: 0, ...OWN_JOURNALS } },
  { model: 'send', bounds: { SENDS: 2, KILLS: 0 } },
  { model: 'send', bounds: { SENDS: 2, KILLS: 0, ...REPLICA }, only: ['CONFIRMS'] },
  // The host that is lost is the one that a kill counts for.
  { model: 'send', bounds: { SENDS: 2, ...OWN_JOURNALS }, only: ['DOUBTS_QUEUED'] },
  {
    model: 'send',
    bounds: { SENDS: 2, KILLS: 0, FALLS: 0, LOOKS: 1 },
    only: ['FINDS_AS_LATE', 'FINDS_SAME', 'MISSING_IS_NOTHING'],
  },
  { model: 'pace', bounds: {} },
];

const TWICE = { SENDS: 2, FALLS: 2, KILLS: 2 };
const LARGE: readonly Search[] = [
  { model: 'pace', name: 'longer times', bounds: { GAP: 3, RESENDS: 2, FLIGHT: 3, REQUESTS: 3 } },
  { model: 'pace', name: 'three workers', bounds: { WORKERS: 3, REQUESTS: 3 } },
  { model: 'send', name: 'a replica, two failovers', bounds: { SENDS: 2, FALLS: 2, KILLS: 0, ...REPLICA } },
  { model: 'send', name: 'look-ups, and a Redis that comes back older', bounds: { SENDS: 2, KILLS: 0, LOOKS: 1 } },
  { model: 'send', name: 'two journals, two falls, two kills', bounds: { ...TWICE, ...OWN_JOURNALS } },
  { model: 'send', name: 'one journal, two falls, two kills', bounds: TWICE },
  { model: 'send', name: 'two journals, two payouts', bounds: { SENDS: 2, PAYOUTS: 2, ...OWN_JOURNALS } },
  { model: 'send', name: 'two journals, three sends', bounds: { SENDS: 3, ...OWN_JOURNALS } },
  { model: 'send', name: 'one journal, three sends', bounds: { SENDS: 3 } },
];

async function main() {
  if (values.rules) return printRules();
  if (values.traces) return compareTraces();
  if (values.page) return makePage();
  if (values.walks !== undefined) return followWalks(wholeNumber(values.walks, USAGE));
  if (values.without !== undefined) return runWithout(values.without);
  let failed = 0;
  const searches = values.large ? LARGE : SMALL;
  for (const { model, name, bounds, idle } of searches) {
    const text = withConstants(await readModel(model), bounds);
    const result = await check(idle === undefined ? text : withCoveredRules(text, idle));
    if (result.broken !== undefined) failed += 1;
    printResult(`${model}, ${name}`, result, true);
  }
  if (!values.large) failed += await countMissed();
  const isSound = report(searches.length + (values.large ? 0 : CONTROLS.length) - failed, failed);
  return (await compareTraces()) && isSound;
}

/** @returns how many of the controls find nothing */
async function countMissed() {
  const text = await readModel('send');
  let missed = 0;
  for (const { name, without, finds, bounds, idle } of CONTROLS) {
    const changed = withoutRules(withConstants(text, bounds), without);
    const result = await check(idle === undefined ? changed : withCoveredRules(changed, idle));
    const isFound = finds.test(result.broken ?? '');
    if (!isFound) missed += 1;
    print(`send, ${name}: ${isFound ? 'found' : 'NOT found'} "${result.broken ?? 'holds'}"`);
  }
  return missed;
}

async function makePage() {
  const path = fileURLToPath(new URL('../../../docs/model.md', import.meta.url));
  const page = await writePage(MODELS, OF_PAGE, values.quick);
  if (!values.check) await writeFile(path, page);
  const isTrue = (await readFile(path, 'utf8')) === page;
  if (!isTrue) print('docs/model.md is not what the searches find: npm run model -- --page');
  return report(isTrue ? 1 : 0, isTrue ? 0 : 1);
}

async function printRules() {
  for (const model of MODELS) {
    for (const { name, meaning } of switchesOf(await readModel(model))) {
      print(`${model}  ${name.padEnd(18)} ${meaning}`);
    }
  }
  return true;
}

/** More in one program take Rumur longer than two programs. */
const BATCH = 50;

async function compareTraces() {
  const startedAt = performance.now();
  const model = await readModel('send');
  const refused: Refusal[] = [];
  let [actions, runs] = [0, 0];
  let batch: Trace[] = [];
  const compare = async () => {
    if (batch.length > 0) refused.push(...(await findRefused(model, batch)));
    batch = [];
  };
  for await (const trace of chosenTraces()) {
    actions += trace.actions.length;
    runs += 1;
    if (batch.push(trace) === BATCH) await compare();
    // A planted mistake is refused once it is seen.
    if (values.planted !== undefined && refused.length > 0) break;
  }
  await compare();
  printRefused(refused);
  print(`${actions} actions of ${runs} runs in ${secondsSince(startedAt).toFixed(0)} s`);
  if (values.planted !== undefined) return report(refused.length > 0 ? 1 : 0, refused.length > 0 ? 0 : 1);
  return report(runs - refused.length, refused.length);
}

/** What the code did on each walk, also on one that it left, must be allowed by the whole model. */
async function followWalks(wanted: number) {
  const startedAt = performance.now();
  const model = await readModel('send');
  const { planted, without } = values;
  const drawnFrom = without === undefined ? model : withConstants(model, { [without]: false });
  const from = wholeNumber(values.from, USAGE);
  const found = await replayWalks(drawnFrom, from, wanted, planted === undefined ? undefined : plant(planted));
  const { same, steps, left, broken, replayed } = found;
  for (const { name, what, lines } of broken) {
    if (values.trace) print(lines.join('\n'));
    print(`${name}: code and model differ: ${what}`);
  }
  const refused: Refusal[] = [];
  const traces = replayed.map(({ trace }) => trace).filter(({ actions }) => actions.length > 0);
  for (let first = 0; first < traces.length; first += BATCH) {
    refused.push(...(await findRefused(model, traces.slice(first, first + BATCH))));
  }
  printRefused(refused);
  for (const [reason, count] of left) print(`${count} not to their end: ${reason}`);
  print(
    `${same} walks to the same end, ${steps} steps of ${replayed.length} walks in ${secondsSince(startedAt).toFixed(0)} s`,
  );
  const faults = broken.length + refused.length;
  if (planted !== undefined || without !== undefined) return report(faults > 0 ? 1 : 0, faults > 0 ? 0 : 1);
  return report(same, faults);
}

function printRefused(refused: readonly Refusal[]) {
  for (const { name, index, action } of refused) {
    print(`${name}: the model forbids action ${index + 1}: ${JSON.stringify(action)}`);
  }
}

function chosenTraces() {
  const from = wholeNumber(values.from, USAGE);
  const { planted, schedules, crashes } = values;
  if (crashes) return crashTraces(planted);
  if (schedules !== undefined) return exploredTraces(from, wholeNumber(schedules, USAGE), planted);
  return simulatedTraces(from, wholeNumber(values.seeds, USAGE), planted);
}

/** Passes if a promise is broken without the rule. */
async function runWithout(rule: string) {
  let [known, found] = [0, 0];
  for (const { model, name, bounds } of SMALL) {
    const text = await readModel(model);
    if (!switchesOf(text).some((each) => each.name === rule)) continue;
    known += 1;
    const result = await check(withConstants(text, { ...bounds, [rule]: false }));
    if (result.broken !== undefined) found += 1;
    printResult(`${model}, ${name}, without ${rule}`, result, values.trace);
  }
  if (known === 0) throw new Error(`There is no rule ${rule}\n${USAGE}`);
  return report(found > 0 ? 1 : 0, found > 0 ? 0 : 1);
}

function either(...patterns: readonly RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join('|'));
}

function printResult(title: string, { broken, steps, states, seconds }: Checked, tracing: boolean) {
  print(`${title}: ${broken ?? 'holds'} (${states} states, ${seconds} s)`);
  if (tracing) for (const step of steps) print(`  ${step}`);
}

await runCommand(main, USAGE, values.help);
