/**
 * `npm run mutation [-- NAMES | --tonight]`: all of it, the groups and Lua scripts named, or those of one folder, another
 * one each day. See docs/proofs.md.
 */
import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { print, secondsSince } from '../command-line.js';
import { groups } from './groups.mjs';
import { scriptTests } from './lua/script-tests.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const REPORTS = join(ROOT, 'reports', 'mutation');
const STRYKER = 'test/proofs/mutation/node_modules/@stryker-mutator/core/bin/stryker.js';
const SCORE_MIN = 90;
const DAY_MS = 24 * 60 * 60 * 1_000;

type Mutant = Readonly<{ file: string; line: number; mistake: string; killed: boolean }>;

type StrykerMutant = Readonly<{
  mutatorName: string;
  replacement?: string;
  status: string;
  location: { start: { line: number } };
}>;
type StrykerReport = Readonly<{ files: Record<string, { mutants: readonly StrykerMutant[] }> }>;
const VERDICTS: Readonly<Record<string, boolean>> = { Killed: true, Timeout: true, Survived: false, NoCoverage: false };

async function main(args: readonly string[]) {
  const startedAt = performance.now();
  const names = args[0] === '--tonight' ? chooseFolder(Date.now()) : args;
  await mkdir(REPORTS, { recursive: true });
  const known = [...Object.keys(groups), ...Object.keys(scriptTests)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`No such group or script: ${unknown.join(', ')}. There are ${known.join(', ')}`);

  const mutants: Mutant[] = [];
  for (const name of names.length > 0 ? names : known) {
    const found = name in groups ? await runGroup(name) : await runScript(name);
    print(`${name}: ${describe(found)}`);
    mutants.push(...found);
  }
  const survivors = mutants.filter(({ killed }) => !killed);
  const lines = survivors.map(({ file, line, mistake }) => `${file}:${line} ${mistake}`).join('\n');
  print(`\nnot noticed:\n${lines}`);
  await writeFile(join(REPORTS, 'survivors.txt'), `${lines}\n`);
  print('');
  let failed = 0;
  const folders = new Set(mutants.map(({ file }) => dirname(file)));
  for (const folder of folders) {
    const found = mutants.filter(({ file }) => dirname(file) === folder);
    print(`${folder}: ${describe(found)}`);
    if (scoreOf(found) < SCORE_MIN) failed += 1;
  }
  print(`in total: ${describe(mutants)}, in ${(secondsSince(startedAt) / 60).toFixed(1)} min`);
  print(`folders with at least ${SCORE_MIN} %: ${folders.size - failed} passed, ${failed} failed`);
  return failed === 0;
}

function chooseFolder(at: number): readonly string[] {
  const folders = new Map<string, string[]>();
  for (const [name, { mutate }] of Object.entries(groups)) {
    const folder = dirname(mutate[0] ?? '');
    folders.set(folder, [...(folders.get(folder) ?? []), name]);
  }
  const choices = [...folders.values(), Object.keys(scriptTests)];
  return choices[Math.floor(at / DAY_MS) % choices.length] ?? [];
}

async function runGroup(group: string) {
  // On disk as well, since some of these tests are about that, but without waiting for the disk at every write.
  const redis = await startLocalRedis({ args: ['--appendfsync', 'no'] });
  try {
    const config = 'test/proofs/mutation/stryker.config.mjs';
    await run([STRYKER, 'run', config], { MUTATION_GROUP: group, REDIS_URL: redis.url });
  } finally {
    await redis.stop();
  }
  const { files } = JSON.parse(await readFile(join(REPORTS, `${group}.json`), 'utf8')) as StrykerReport;
  return Object.entries(files).flatMap(([file, report]) =>
    report.mutants.flatMap(({ mutatorName, replacement = '', status, location }) => {
      const killed = VERDICTS[status];
      const mistake = `${mutatorName} → ${replacement.replace(/\s+/g, ' ').slice(0, 100)}`;
      return killed === undefined ? [] : [{ file, line: location.start.line, mistake, killed }];
    }),
  );
}

async function runScript(script: string) {
  const node = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', '--import', 'tsx'];
  const output = await run([...node, 'test/proofs/mutation/lua/run-lua.ts', script], {});
  const file = `src/ledger/lua/${script}.lua`;
  const verdicts = output.trim().split('\n');
  return verdicts.map((line) => ({ file, ...(JSON.parse(line) as Omit<Mutant, 'file'>) }));
}

async function run(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${String(code)}:\n${output.slice(-4_000)}`);
  return output;
}

const scoreOf = (mutants: readonly Mutant[]) =>
  (100 * mutants.filter(({ killed }) => killed).length) / Math.max(1, mutants.length);

function describe(mutants: readonly Mutant[]) {
  const killed = mutants.filter((mutant) => mutant.killed).length;
  return `${mutants.length} mutants, ${killed} killed, ${mutants.length - killed} survived: ${scoreOf(mutants).toFixed(1)} %`;
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
