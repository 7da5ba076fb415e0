import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { findBuiltProgram } from './built-program.js';
import { TEST_AUDIENCE } from '../control/support/keys.js';

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** Set on top of PATH, HOME and REDIS_URL; nothing else of the test's environment reaches the command. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** As from a program that may write more. */
  readonly inputStaysOpen?: true;
}

export interface RunningCli {
  readonly result: Promise<CliResult>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves once stdout and stderr together match; rejects when the command ends before. */
  waitForOutput(pattern: RegExp): Promise<void>;
}

export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return startCli(args, options).result;
}

export function startCli(
  args: readonly string[],
  { env = {}, input = '', inputStaysOpen }: CliOptions = {},
): RunningCli {
  const { PATH = '', HOME = '', REDIS_URL = '' } = process.env;
  const child = spawn(process.execPath, [findBuiltProgram(), ...args], {
    env: { PATH, HOME, REDIS_URL, PAYOUT_AUDIENCE: TEST_AUDIENCE, ...env },
  });
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
  const waitForOutput = async (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const watch = () => {
        if (!pattern.test(stdout + stderr)) return;
        watchers.delete(watch);
        resolve();
      };
      watchers.add(watch);
      watch();
      void result.then(() => {
        reject(new Error(`payouts ended before its output matched ${String(pattern)}:\n${stdout}${stderr}`));
      }, reject);
    });
  return { result, kill: (signal) => void child.kill(signal), waitForOutput };
}
