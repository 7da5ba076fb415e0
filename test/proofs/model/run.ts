import { parseArgs } from 'node:util';
import { FLAG, print, report, runCommand, TEXT } from '../command-line.js';
import {
  check,
  type Checked,
  type Constants,
  readModel,
  switchesOf,
  withConstants,
  withCoveredRules,
} from './checker.js';

const USAGE = `npm run model                                      searches each model to its end, within small bounds
npm run model -- --large                           the same within larger bounds: hours
npm run model -- --without RULE [--trace]          without a rule or an assumption; --trace prints the counterexample
npm run model -- --rules                           what can be left out
`;

const { values } = parseArgs({
  options: { without: TEXT, large: FLAG, trace: FLAG, rules: FLAG, help: FLAG },
});

interface Search {
  readonly model: string;
  readonly name: string;
  readonly bounds: Constants;
  /** Rules that cannot fire while all rules and assumptions hold. */
  readonly idle: RegExp;
}

const ONLY_WITHOUT = /is stopped before it writes|goes on, and writes|another program|loses its journal/;

const SMALL: readonly Search[] = [
  { model: 'send', name: 'one journal for both hosts', bounds: { SENDS: 2 }, idle: ONLY_WITHOUT },
  { model: 'send', name: 'a journal for each host', bounds: { SENDS: 2, SHARED: false }, idle: ONLY_WITHOUT },
];

const LARGE: readonly Search[] = [
  { model: 'send', name: 'one journal, three sends', bounds: { SENDS: 3 }, idle: ONLY_WITHOUT },
  { model: 'send', name: 'two journals, three sends', bounds: { SENDS: 3, SHARED: false }, idle: ONLY_WITHOUT },
  { model: 'send', name: 'one journal, two payouts', bounds: { SENDS: 2, PAYOUTS: 2 }, idle: ONLY_WITHOUT },
  { model: 'send', name: 'two journals, two falls', bounds: { SENDS: 2, FALLS: 2, SHARED: false }, idle: ONLY_WITHOUT },
];

async function main() {
  if (values.rules) return printRules();
  if (values.without !== undefined) return runWithout(values.without);
  let failed = 0;
  const searches = values.large ? LARGE : SMALL;
  for (const { model, name, bounds, idle } of searches) {
    const text = withConstants(await readModel(model), bounds);
    const result = await check(values.large ? text : withCoveredRules(text, idle));
    if (result.broken !== undefined) failed += 1;
    printResult(`${model}, ${name}`, result, true);
  }
  return report(searches.length - failed, failed);
}

async function printRules() {
  for (const { name, meaning } of switchesOf(await readModel('send'))) print(`${name.padEnd(18)} ${meaning}`);
  return true;
}

/** Passes if a promise is broken without the rule. */
async function runWithout(rule: string) {
  const model = await readModel('send');
  if (!switchesOf(model).some(({ name }) => name === rule)) throw new Error(`There is no rule ${rule}\n${USAGE}`);
  let found = 0;
  for (const { name, bounds } of SMALL) {
    const result = await check(withConstants(model, { ...bounds, [rule]: false }));
    if (result.broken !== undefined) found += 1;
    printResult(`send, ${name}, without ${rule}`, result, values.trace);
  }
  return report(found > 0 ? 1 : 0, found > 0 ? 0 : 1);
}

function printResult(title: string, { broken, steps, states, seconds }: Checked, tracing: boolean) {
  print(`${title}: ${broken ?? 'holds'} (${states} states, ${seconds} s)`);
  if (tracing) for (const step of steps) print(`  ${step}`);
}

await runCommand(main, USAGE, values.help);
