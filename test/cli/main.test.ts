import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { newPlatformId } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { runCli } from '../support/cli.js';
import { runInProcess } from './support/in-process.js';

/** Every command there is, with those under `gateway`, `audit` and `keys`. */
const COMMANDS = [
  ...[
    'enqueue',
    'import',
    'get',
    'list',
    'cancel',
    'retry',
    'release',
    'resolve',
    'stats',
    'status',
    'events',
    'pause',
    'resume',
  ],
  ...[
    'new-account',
    'adopt-ledger',
    'gateway',
    'worker',
    'dashboard',
    'serve',
    'sandbox',
    'demo',
    'doctor',
    'activity',
    'completion',
  ],
  ...['notify', 'audit', 'keys'],
  ...['policy', 'approvals', 'approve', 'reject', 'reconcile'],
];
const GATEWAY_COMMANDS = ['balance', 'currencies', 'wallet', 'status'];
const AUDIT_COMMANDS = ['verify', 'export', 'adopt-journal', 'upgrade-journal'].map((name) => `audit ${name}`);
const KEYS_COMMANDS = ['init', 'generate', 'check', 'sign', 'verify'].map((name) => `keys ${name}`);

/** The commands that a help text lists; the lines of its examples begin with the program's name. */
function listedIn(help: string): string[] {
  const names = [...help.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help' && name !== 'payouts').sort();
}

describe('payouts', () => {
  it('lists every command in its help', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    expect(listedIn(stdout)).toEqual(COMMANDS.toSorted());
    expect(listedIn((await runCli(['gateway', '--help'])).stdout)).toEqual(GATEWAY_COMMANDS.toSorted());
  });

  it.each([
    ...COMMANDS,
    ...GATEWAY_COMMANDS.map((name) => `gateway ${name}`),
    ...AUDIT_COMMANDS,
    ...KEYS_COMMANDS,
    'serve token',
  ])('%s has a help with examples of its own at the end', async (command) => {
    const { code, stdout, stderr } = await runInProcess([...command.split(' '), '--help'], {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, examples = ''] = stdout.split('\nExamples:\n');
    const lines = examples.trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^ {2}\S/);
    expect(lines.filter((line) => line.includes(`payouts ${command}`))).not.toEqual([]);
  });

  it.each([
    ['keygen', 'keys generate'],
    ['sign', 'keys sign'],
    ['verify', 'keys verify'],
    ['journal', 'audit'],
    ['journal adopt', 'audit adopt-journal'],
    ['journal upgrade', 'audit upgrade-journal'],
  ])('takes %s as %s, and says so on stderr', async (former, present) => {
    const help = await runInProcess([...present.split(' '), '--help'], {});
    expect(await runInProcess([...former.split(' '), '--help'], {})).toEqual({
      ...help,
      stderr: `payouts: "${former}" is now "${present}"; the old name works until the next release\n`,
    });
    const { code, stdout } = await runInProcess(['help', ...former.split(' ')], {});
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: (await runInProcess(['help', ...present.split(' ')], {})).stdout,
    });
  });

  it('prints its version', async () => {
    expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it('exits 2 for wrong usage, with a suggestion', async () => {
    expect(await runCli([])).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Usage: payouts') });
    const unknown = await runCli(['cancle', 'p-1']);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toMatch(/^payouts: unknown command 'cancle'\n\(Did you mean cancel\?\)/);
    expect(await runCli(['get', '--frob'])).toMatchObject({ code: 2 });
  });

  it('exits with the same code when stderr is a full disk', () => {
    const full = openSync('/dev/full', 'w');
    try {
      for (const [args, code] of [
        [['cancle'], 2],
        [['get', '--help'], 0],
      ] as const) {
        const { status } = spawnSync(process.execPath, [findBuiltProgram(), ...args], {
          stdio: ['ignore', 'ignore', full],
        });
        expect(status).toBe(code);
      }
    } finally {
      closeSync(full);
    }
  });

  it('exits 13 if it ends before the command is finished', () => {
    const program = findBuiltProgram();
    const neverFinish = `
      import { createRequire } from 'node:module';
      createRequire(${JSON.stringify(program)})('./context/run-program.js').runProgram = () => new Promise(() => {});`;
    const preload = `data:text/javascript,${encodeURIComponent(neverFinish)}`;
    const { status, stderr } = spawnSync(process.execPath, ['--import', preload, program, 'stats'], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 13, stderr: 'payouts: ended before the command was finished\n' });
  });

  it('exits 2 for an invalid environment, naming every problem', async () => {
    const result = await runCli(['stats'], { env: { REDIS_URL: 'http://x', GATEWAY_PLATFORM_ID: '' } });
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(
      /^payouts: REDIS_URL: must begin with .*\npayouts: GATEWAY_PLATFORM_ID: is required\n$/,
    );
  });

  it('exits 1 within seconds when Redis is unavailable, with what to do', async () => {
    const startedAt = performance.now();
    const env = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: String(newPlatformId()) };
    const result = await runCli(['get', 'p-1'], { env });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(/Redis unavailable .*: check that it runs/);
    expect(result.stderr).not.toMatch(/^ +at /m);
  });
});
