import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { findBuiltProgram } from './built-program.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';

export type CliResult = Readonly<{
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}>;

export type CliOptions = Readonly<{
  /** Set on top of PATH and HOME, for `payouts` REDIS_URL, too; nothing else of the test's environment reaches it. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  input?: string;
  /** As from a program that may write more. */
  inputStaysOpen?: true;
}>;

export type RunningCli = ReturnType<typeof startProgram>;

export const runCli = async (args: readonly string[], options?: CliOptions) => startCli(args, options).result;

export const startCli = (args: readonly string[], { env, ...options }: CliOptions = {}) =>
  startProgram(process.execPath, [findBuiltProgram(), ...args], {
    ...options,
    // The tests also run on an older Node, of which each command would say so.
    env: { REDIS_URL: process.env['REDIS_URL'] ?? '', PAYOUT_AUDIENCE: TEST_AUDIENCE, NODE_NO_WARNINGS: '1', ...env },
  });

export function startProgram(
  program: string,
  args: readonly string[],
  { env, cwd, input = '', inputStaysOpen }: CliOptions = {},
) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(program, args, { cwd, env: { PATH, HOME, ...env } });
  child.stdin.on('error', () => undefined);
  if (inputStaysOpen) child.stdin.write(input);
  else child.stdin.end(input);

  let [stdout, stderr] = ['', ''];
  const watchers = new Set<() => void>();
  const read = (stream: Readable, append: (text: string) => void) => {
    stream.setEncoding('utf8').on('data', (text: string) => {
      append(text);
      for (const watch of watchers) watch();
    });
  };
  read(child.stdout, (text) => (stdout += text));
  read(child.stderr, (text) => (stderr += text));
  const result = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
    });
  });
  /** Resolves once stdout and stderr together match; rejects when the program ends before. */
  const waitForOutput = async (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const watch = () => {
        const found = pattern.exec(stdout + stderr);
        if (found === null) return;
        watchers.delete(watch);
        resolve(found);
      };
      watchers.add(watch);
      watch();
      void result.then(() => {
        reject(new Error(`it ended before its output matched ${String(pattern)}:\n${stdout}${stderr}`));
      }, reject);
    });
  return { result, kill: (signal: NodeJS.Signals) => void child.kill(signal), waitForOutput };
}
