import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runCli } from '../support/cli.js';
import { runInProcess } from './support/in-process.js';

const run = promisify(execFile);
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'completion-'));
  const { code, stdout } = await runCli(['completion', 'bash']);
  expect(code).toBe(0);
  await writeFile(join(dir, 'payouts.bash'), stdout);
});

afterAll(async () => rm(dir, { recursive: true }));

/** What bash offers behind these words, the last of which is being typed. */
async function complete(...words: string[]): Promise<string[]> {
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _payouts; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await run('bash', ['-c', script, 'bash', join(dir, 'payouts.bash'), ...words]);
  return stdout.split('\n').filter(Boolean);
}

describe('payouts completion bash', () => {
  it('completes commands, their options, and the values of options', async () => {
    expect(await complete('payouts', 'c')).toEqual(['cancel', 'completion']);
    expect(await complete('payouts', 'cancel', '--b')).toEqual(['--batch', '--by']);
    expect(await complete('payouts', 'cancel', '--state', '')).toEqual(['queued', 'held', 'rejected']);
    expect(await complete('payouts', 'list', '--a')).toEqual([
      '--address',
      '--amount',
      '--archived',
      '--all',
      '--account',
    ]);
    expect(await complete('payouts', 'completion', '')).toEqual(['bash', 'zsh', 'fish', '--help']);
  });

  it('completes commands under a command', async () => {
    expect(await complete('payouts', 'gateway', 'b')).toEqual(['balance']);
    expect(await complete('payouts', 'gateway', 'balance', '--a')).toEqual(['--account']);
  });

  it('leaves the names of files to bash', async () => {
    expect(await complete('payouts', 'cancel', '--file', '')).toEqual([]);
  });
});

describe('payouts completion', () => {
  it.each(['zsh', 'fish'])('prints a script for %s that names every command and option', async (shell) => {
    const { code, stdout } = await runInProcess(['completion', shell], {});
    expect(code).toBe(0);
    for (const word of ['adopt-ledger', 'balance', 'quote-formulas', 'in_progress']) {
      expect(stdout).toContain(word);
    }
    expect(stdout.split("'").length % 2).toBe(1);
  });

  it('knows no other shell', async () => {
    expect(await runInProcess(['completion', 'tcsh'], {})).toMatchObject({ code: 2, stdout: '' });
  });
});
