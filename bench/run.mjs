// npm run bench -- NAME [--json] [--quick]
import { parseArgs } from 'node:util';
import { describeMachine, formatResult } from './report.mjs';

const BENCHMARKS = ['pacing', 'overhead', 'enqueue', 'poll', 'accounts', 'backlog', 'commands', 'scripts', 'http'];
const USAGE = `usage: npm run bench -- ${BENCHMARKS.join('|')} [--json] [--quick]

  --json   the result as one JSON object on stdout (npm run --silent bench -- …)
  --quick  smaller numbers: only checks that it runs and measures something, its figures mean nothing
docs/benchmarks.md says what each measures.
`;

const { values, positionals } = readArguments();
const [name] = positionals;
if (positionals.length !== 1 || !BENCHMARKS.includes(name)) stop(USAGE);

// Exiting ends the servers and processes that a benchmark started.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const { run } = await import(`./benchmarks/${name}.mjs`);
// Before the run, since the run itself is load.
const machine = describeMachine();
const result = await run({ quick: values.quick, note: (line) => process.stderr.write(`${line}\n`) });
const report = { benchmark: name, quick: values.quick, machine, ...result };
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : formatResult(report));
// A missed target of a small run means nothing; a figure that nothing was measured for fails every run.
const isEmpty = ({ value, atLeast }) => !Number.isFinite(value) || (atLeast !== undefined && value <= 0);
const empty = result.figures.filter(isEmpty).map(({ name: figure }) => figure);
for (const each of empty) process.stderr.write(`Nothing was measured: ${each}\n`);
const isMissed = !values.quick && result.figures.some(({ reached }) => !reached);
if (result.figures.length === 0 || empty.length > 0 || isMissed) process.exitCode = 1;

function readArguments() {
  const flag = { type: 'boolean', default: false };
  try {
    return parseArgs({ options: { json: flag, quick: flag }, allowPositionals: true });
  } catch (error) {
    return stop(`${error.message}\n${USAGE}`);
  }
}

function stop(text) {
  process.stderr.write(text);
  process.exit(2);
}
