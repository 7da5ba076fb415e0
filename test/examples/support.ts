import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';

/** A program of `examples/` that is running. */
export interface RunningExample {
  /** Resolves once stdout and stderr together match. */
  waitForOutput(pattern: RegExp): Promise<void>;
  /** Sends a signal and waits for the end. @returns exit code or signal, and everything printed */
  end(signal?: NodeJS.Signals): Promise<{ readonly ended: unknown[]; readonly output: string }>;
}

/** Runs an example as its first lines say, on the Redis of the tests. */
export function runExample(
  file: string,
  env: Readonly<Record<string, string>>,
  { node = [], args = [] }: { readonly node?: readonly string[]; readonly args?: readonly string[] } = {},
): RunningExample {
  const path = fileURLToPath(new URL(`../../examples/${file}`, import.meta.url));
  // Examples import the package by its name, which is what was built.
  findBuiltProgram();
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', ...node, path, ...args], {
    env: { PATH, HOME, REDIS_URL: testRedisUrl(), ...env },
  });
  const ended = once(child, 'close');
  let output = '';
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      for (const watch of watchers) watch();
    });
  }
  return {
    waitForOutput: async (pattern) =>
      new Promise((resolve, reject) => {
        const watch = (): void => {
          if (pattern.test(output)) resolve();
        };
        watchers.add(watch);
        watch();
        void ended.then(() => {
          reject(new Error(`${file} ended before its output matched ${String(pattern)}:\n${output}`));
        });
      }),
    async end(signal) {
      if (signal !== undefined) child.kill(signal);
      return { ended: await ended, output };
    },
  };
}
