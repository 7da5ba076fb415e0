import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { DemoSummary } from '../../../src/cli/demo/demo-summary.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { until } from '../../support/until.js';

const END_WITHIN_MS = 10_000;
const GONE_WITHIN_MS = 2_000;

/** Starts `payouts demo` of the built program, in a process group and with a temporary folder of its own. */
async function startDemo(...options: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-test-'));
  // Settings of the user, which the demo must ignore.
  const settings = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_BASE_URL: 'http://127.0.0.1:1' };
  const env = { PATH: process.env['PATH'], TMPDIR: dir, ...settings };
  const child = spawn(process.execPath, [findBuiltProgram(), 'demo', '--chaos', ...options], { env, detached: true });
  const group = -(child.pid ?? 0);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const exists = () => {
    try {
      return process.kill(group, 0);
    } catch {
      return false;
    }
  };
  return {
    output,
    ended,
    /** Sends a signal to the demo only, or to all that it started as well, as a terminal does with Ctrl-C. */
    kill: (signal: NodeJS.Signals, whom: 'demo' | 'all') => process.kill(whom === 'all' ? group : -group, signal),
    waitFor: async (pattern: RegExp): Promise<void> =>
      until(
        () => `the demo prints ${String(pattern)}:\n${output.stdout}${output.stderr}`,
        () => pattern.test(output.stdout + output.stderr),
        120_000,
      ),
    /** Expects that it left neither processes nor files. Both are removed. */
    expectNoRemains: async (): Promise<void> => {
      await Promise.race([ended, delay(END_WITHIN_MS, undefined, { ref: false })]);
      // What was killed takes a moment to be gone.
      await until('the processes of the demo are gone', () => !exists(), GONE_WITHIN_MS).catch(() => undefined);
      const processes = exists();
      if (processes) process.kill(group, 'SIGKILL');
      const files = await readdir(dir);
      await rm(dir, { recursive: true, force: true });
      expect({ processes, files }).toEqual({ processes: false, files: [] });
    },
  };
}

it.each(['v1', 'v2'])(
  'payouts demo --chaos --gateway %s keeps the promises while its worker is killed, and leaves nothing behind',
  async (api) => {
    const demo = await startDemo('--json', '--gateway', api);
    const code = await demo.ended;
    const summary = JSON.parse(demo.output.stdout) as DemoSummary;
    expect(summary).toMatchObject({ ok: true, problems: [], sentTwice: 0 });
    expect([code, demo.output.stderr.includes('killed')]).toEqual([0, true]);
    expect(summary.workerKills).toBeGreaterThan(0);
    expect(summary.smallestGapMs).toBeGreaterThanOrEqual(1_000);
    expect(summary.states.completed + summary.states.unknown).toBe(summary.payouts);
    await demo.expectNoRemains();
  },
  300_000,
);

/** They wait for a pace, not for a processor: together they take as long as the longest. */
describe('payouts demo', () => {
  it.concurrent.each([
    { signal: 'SIGINT', whom: 'all', times: 1 },
    { signal: 'SIGTERM', whom: 'demo', times: 2 },
    { signal: 'SIGHUP', whom: 'demo', times: 1 },
  ] as const)(
    'ends all it started on $signal to $whom, $times times',
    async ({ signal, whom, times }) => {
      const demo = await startDemo();
      await demo.waitFor(/queued → sending/);
      for (let time = 0; time < times; time += 1) {
        demo.kill(signal, whom);
        // Two signals in a row would else arrive as one.
        await delay(5);
      }
      expect([await demo.ended, demo.output.stdout]).toEqual([1, '']);
      await demo.expectNoRemains();
    },
    60_000,
  );
});
