// npm run bench -- NAME [--json] [--quick]
import { parseArgs } from 'node:util';
import type { Benchmark } from './benchmark.js';
import { findEmpty } from './figure.js';
import { describeMachine, formatResult } from './report.js';

const BENCHMARKS = [
  'pacing',
  'overhead',
  'enqueue',
  'poll',
  'accounts',
  'backlog',
  'commands',
  'scripts',
  'http',
  'failovers',
  'durable',
];
const USAGE = `usage: npm run bench -- ${BENCHMARKS.join('|')} [--json] [--quick]

  --json   the result as one JSON object on stdout (npm run --silent bench -- …)
  --quick  smaller numbers: only checks that it runs and measures something, its figures mean nothing
docs/benchmarks.md says what each measures.
`;

const { values, positionals } = readArguments();
const [name = ''] = positionals;
if (positionals.length !== 1 || !BENCHMARKS.includes(name)) stop(USAGE);

// Exiting ends the servers and processes that a benchmark started.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const { run } = (await import(`./benchmarks/${name}.ts`)) as { readonly run: Benchmark };
// Before the run, since the run itself is load.
const machine = describeMachine();
const { quick, json } = values;
const result = await run({ quick, note: (line) => process.stderr.write(`${line}\n`) });
const report = { benchmark: name, quick, machine, ...result };
process.stdout.write(json ? `${JSON.stringify(report)}\n` : formatResult(result, quick));
const empty = findEmpty(result.figures);
for (const each of empty) process.stderr.write(`Nothing was measured: ${each}\n`);
const isMissed = !quick && result.figures.some(({ reached }) => !reached);
if (result.figures.length === 0 || empty.length > 0 || isMissed) process.exitCode = 1;

function readArguments() {
  const flag = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({ options: { json: flag, quick: flag }, allowPositionals: true });
  } catch (error) {
    return stop(`${(error as Error).message}\n${USAGE}`);
  }
}

function stop(text: string): never {
  process.stderr.write(text);
  process.exit(2);
}
