import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findBuiltProgram } from '../../../support/built-program.js';
import { until } from '../../../support/until.js';

/** As long as a test may take. */
const PRINTED_WITHIN_MS = 120_000;
const END_WITHIN_MS = 10_000;
const GONE_WITHIN_MS = 2_000;

/** A `payouts demo` of the built program, in a process group and with a temporary folder of its own. */
export interface RunningDemo {
  /** What stdout and stderr hold until now. */
  readonly output: () => { readonly stdout: string; readonly stderr: string };
  /** Sends a signal to the demo only, or to all that it started as well, as a terminal does with Ctrl-C. */
  kill(signal: NodeJS.Signals, whom: 'demo' | 'all'): void;
  /** Waits until stdout or stderr matches. */
  waitFor(pattern: RegExp): Promise<void>;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** What it left behind: process groups and files. Both are removed. */
  findRemains(): Promise<{ readonly processes: boolean; readonly files: readonly string[] }>;
}

export async function startDemo(args: readonly string[], path = process.env['PATH'] ?? ''): Promise<RunningDemo> {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
  // Settings of the user, which the demo must ignore.
  const environment = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_BASE_URL: 'http://127.0.0.1:1' };
  const child = spawn(process.execPath, [findBuiltProgram(), 'demo', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: path, TMPDIR: dir, ...environment },
    detached: true,
  });
  const group = -(child.pid ?? 0);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => {
      resolve(code ?? signal);
    });
  });
  return {
    output: () => ({ stdout, stderr }),
    kill: (signal, whom) => {
      process.kill(whom === 'all' ? group : -group, signal);
    },
    waitFor: async (pattern) => {
      await until(
        `the demo prints ${String(pattern)}`,
        () => {
          const isPrinted = pattern.test(stdout + stderr);
          if (!isPrinted && child.exitCode !== null) {
            throw new Error(`The demo ended before ${String(pattern)}:\n${stdout}${stderr}`);
          }
          return isPrinted;
        },
        PRINTED_WITHIN_MS,
      );
    },
    ended,
    findRemains: async () => {
      await Promise.race([ended, delay(END_WITHIN_MS, undefined, { ref: false })]);
      const processes = await outlives(group);
      const files = await readdir(dir);
      await rm(dir, { recursive: true, force: true });
      return { processes, files };
    },
  };
}

/** What was killed takes a moment to be gone. @returns whether any process of the group stays */
async function outlives(group: number): Promise<boolean> {
  try {
    await until('the processes of the demo are gone', () => !exists(group), GONE_WITHIN_MS);
    return false;
  } catch {
    process.kill(group, 'SIGKILL');
    return true;
  }
}

function exists(group: number): boolean {
  try {
    return process.kill(group, 0);
  } catch {
    return false;
  }
}
