import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { Command, Help } from 'commander';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import '../../src/cli/demo/demo-command.js';
import '../../src/cli/worker/worker-command.js';
import { findOldNode } from '../../src/base/version.js';
import { createProcessContext } from '../../src/cli/context/cli-context.js';
import { newPlatformId } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { runCli } from '../support/cli.js';
import { runInProcess } from './support/in-process.js';

/** hostile-text.test.ts has a list of them that does not come from the table. */
const COMMANDS = COMMAND_GROUPS.flatMap(({ commands }) => commands.map(({ usage }) => usage.split(' ')[0] ?? ''));
const context = createProcessContext();
const GATEWAY_COMMANDS = ['balance', 'currencies', 'wallet', 'status', 'find'];
const UNDER = [
  ...GATEWAY_COMMANDS.map((name) => `gateway ${name}`),
  ...['verify', 'export', 'adopt-journal'].map((name) => `audit ${name}`),
  ...['init', 'generate', 'check', 'sign', 'verify'].map((name) => `keys ${name}`),
];

const help = async (command: string) => runInProcess([...command.split(' '), '--help'], {});

/** The commands that a help text lists; the lines of its examples begin with the program's name. */
function listedIn(text: string) {
  const names = [...text.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help' && name !== 'payouts').sort();
}

it('says in one line that it runs on an older Node than the package promises', async () => {
  expect(findOldNode('22.0.0')).toBeUndefined();
  expect(findOldNode('24.1.0')).toBeUndefined();
  const old = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.9.0' } })";
  const env = { PATH: process.env['PATH'] ?? '', NODE_OPTIONS: `--import "data:text/javascript,${encodeURI(old)}"` };
  const run = async (more: object) =>
    promisify(execFile)(process.execPath, [findBuiltProgram(), '--version'], { env: { ...env, ...more } });
  const { stdout, stderr } = await run({});
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(stderr).toBe('payouts: Node.js 20.9.0 is older than 22, the oldest that payout-queue is tested with\n');
  expect((await run({ NODE_NO_WARNINGS: '1' })).stderr).toBe('');
  // Also if that Node cannot load what the program needs.
  const fails = `${old}; import('node:module').then(({ default: { prototype } }) => {
    const load = prototype.require;
    prototype.require = function (name) {
      if (name === 'commander') throw new SyntaxError('as of an older Node');
      return load.call(this, name);
    };
  })`;
  const broken = { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(fails)}"` };
  await expect(run(broken)).rejects.toMatchObject({
    stderr: expect.stringMatching(/^payouts: Node\.js 20\.9\.0 is older than 22[^]*SyntaxError: as of an older Node/),
  });
});

it('lists every command in its help', async () => {
  const { code, stdout } = await runCli(['--help']);
  expect(code).toBe(0);
  expect(listedIn(stdout)).toEqual(COMMANDS.toSorted());
  expect(listedIn((await help('gateway')).stdout)).toEqual(GATEWAY_COMMANDS.toSorted());
});

it('says in its help of every command what it takes', async () => {
  for (const command of [...COMMANDS, ...UNDER, 'serve token']) {
    const { code, stdout, stderr } = await help(command);
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
    const lines = (stdout.split('\nExamples:\n')[1] ?? '').trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^ {2}\S/);
    expect(lines.filter((line) => line.includes(`payouts ${command}`))).not.toEqual([]);
  }
  for (const { usage, load } of COMMAND_GROUPS.flatMap(({ commands }) => commands)) {
    const command = new Command(usage.split(' ')[0]);
    (await load())(command, context);
    expect(new Help().subcommandTerm(command)).toBe(usage);
  }
});

it('prints its version, and exits 2 for wrong usage, with a suggestion', async () => {
  expect((await runInProcess(['--version'], {})).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  const usage = expect.stringContaining('Usage: payouts');
  expect(await runInProcess([], {})).toMatchObject({ code: 2, stdout: '', stderr: usage });
  const unknown = await runCli(['cancle', 'p-1']);
  expect(unknown).toMatchObject({ code: 2, stdout: '' });
  expect(unknown.stderr).toMatch(/^payouts: unknown command 'cancle'\n\(Did you mean cancel\?\)/);
});

it('exits 13 if it ends before the command is finished', () => {
  const program = findBuiltProgram();
  const neverFinish = `
    import { createRequire } from 'node:module';
    createRequire(${JSON.stringify(program)})('./context/run-program.js').runProgram = () => new Promise(() => {});`;
  const args = ['--import', toDataUrl(neverFinish), program, 'stats'];
  const env = { ...process.env, NODE_NO_WARNINGS: '1' };
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  expect({ status, stderr }).toEqual({ status: 13, stderr: 'payouts: ended before the command was finished\n' });
});

it('exits 2 for an invalid environment, naming every problem', async () => {
  const { code, stderr } = await runInProcess(['stats'], { REDIS_URL: 'http://x', GATEWAY_PLATFORM_ID: '' });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^payouts: REDIS_URL: must begin with .*\npayouts: GATEWAY_PLATFORM_ID: is required\n$/);
});

/** Prints the path of every module that was loaded. */
const PRINTING_HOOK = `
  import { writeSync } from 'node:fs';
  import { createRequire } from 'node:module';
  const { cache } = createRequire('/');
  process.on('exit', () => writeSync(2, Object.keys(cache).map((path) => 'loads ' + path + '\\n').join('')));`;

function toDataUrl(source: string) {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

/** What `payouts` imports for a command: packages, and modules of its own. */
async function importsOf(...args: string[]): Promise<{ packages: string[]; modules: string[] }> {
  const { PATH = '', REDIS_URL = '' } = process.env;
  const env = { PATH, REDIS_URL, GATEWAY_PLATFORM_ID: String(newPlatformId()) };
  const command = ['--import', toDataUrl(PRINTING_HOOK), findBuiltProgram(), ...args];
  const run = promisify(execFile)(process.execPath, command, { env });
  // A command that does not find its payout has imported as much.
  const { stderr } = await run.catch((error: unknown) => error as { readonly stderr: string });
  const found = (pattern: RegExp) => [...new Set([...stderr.matchAll(pattern)].map(([, name = '']) => name))];
  return {
    packages: found(/^loads .*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/gm).sort(),
    modules: found(/^loads .*\/dist\/(.+)$/gm),
  };
}

const HEAVY = ['bullmq', 'axios', 'express', 'prom-client', 'pino'];

it.each([
  { args: ['--help'], most: 10 },
  { args: ['cancel', 'nobody', '--reason', 'none'], most: 68 },
  { args: ['stats', '--json'], most: 75 },
])('of `payouts $args` imports at most $most modules, and nothing that only services need', async ({ args, most }) => {
  const { modules, packages } = await importsOf(...args);
  expect(modules).toContain('cli/main.js');
  expect(modules.length).toBeLessThanOrEqual(most);
  if (args[0] === '--help') expect(packages).toEqual(['commander', 'picocolors']);
  if (args[0] === 'stats') expect(packages.filter((name) => HEAVY.includes(name))).toEqual([]);
});

it('names the row of an import that has a stray quote, also in the built program', async () => {
  const env = { GATEWAY_PLATFORM_ID: String(newPlatformId()) };
  const input = 'payout_id,payment_id,amount,address_to\np-1,6,12.5,"TXYZ"x"\n';
  const { code, stderr } = await runCli(['import', '-', '--dry-run'], { env, input });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/line 2: row: value 4 contains a quote but is not quoted/)]);
});

it('payouts completion completes commands, options and values in bash', async () => {
  const script = (await runInProcess(['completion', 'bash'], {})).stdout;
  for (const [line, expected] of [
    ['payouts c', ['cancel', 'comment', 'completion']],
    ['payouts cancel --b', ['--batch', '--by']],
    ['payouts cancel --state ', ['queued', 'held', 'rejected']],
    ['payouts gateway balance --a', ['--account']],
    ['payouts cancel --file ', []],
  ] as const) {
    const complete = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _payouts; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)('bash', ['-c', complete, 'bash', ...line.split(' ')]);
    expect(stdout.split('\n').filter(Boolean)).toEqual(expected);
  }
});

it('payouts completion has a script for zsh and fish that names every command and option', async () => {
  for (const shell of ['zsh', 'fish']) {
    const { stdout } = await runInProcess(['completion', shell], {});
    for (const word of ['adopt-ledger', 'balance', 'quote-formulas', 'in_progress']) expect(stdout).toContain(word);
    expect(stdout.split("'").length % 2).toBe(1);
  }
  expect(await runInProcess(['completion', 'tcsh'], {})).toMatchObject({ code: 2, stdout: '' });
});
