import { describe, expect, it } from '@jest/globals';
import type { DemoSummary } from '../../../src/cli/demo/demo-summary.js';
import { runCli } from '../../support/cli.js';
import { startDemo } from '../demo/support/running-demo.js';

const NOTHING = { processes: false, files: [] };

/** They wait for a pace, not for a processor: together they take as long as the longest. */
describe('payouts demo', () => {
  it.concurrent(
    'shows each change as a line, prints its summary as JSON, and leaves nothing behind',
    async () => {
      const demo = await startDemo(['--payouts', '4', '--json']);
      expect(await demo.ended).toBe(0);
      const { stdout, stderr } = demo.output();
      const summary = JSON.parse(stdout) as DemoSummary;
      expect(summary).toMatchObject({ ok: true, problems: [], payouts: 4, sentTwice: 0, workerKills: 0, unknown: [] });
      expect(summary.states).toMatchObject({ completed: 4, queued: 0, unknown: 0 });
      expect(summary.smallestGapMs).toBeGreaterThanOrEqual(1_000);
      for (const payoutId of ['demo-01', 'demo-04']) {
        expect(stderr).toMatch(new RegExp(`s {2}${payoutId} {2}queued → sending\\n`));
        expect(stderr).toMatch(new RegExp(`s {2}${payoutId} {2}sending → in_progress`));
        expect(stderr).toMatch(new RegExp(`s {2}${payoutId} {2}in_progress → completed\\n`));
      }
      expect(stderr).not.toContain('\u001b');
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    60_000,
  );

  it.concurrent(
    'with --chaos kills the worker three times and more, and the promises hold',
    async () => {
      const demo = await startDemo(['--payouts', '6', '--chaos', '--json']);
      expect(await demo.ended).toBe(0);
      const { stdout, stderr } = demo.output();
      const summary = JSON.parse(stdout) as DemoSummary;
      expect(summary).toMatchObject({ ok: true, problems: [], payouts: 6, sentTwice: 0 });
      expect(summary.workerKills).toBeGreaterThanOrEqual(3);
      expect(summary.states.completed + summary.states.unknown).toBe(6);
      expect(summary.unknown).toHaveLength(summary.states.unknown);
      expect(summary.smallestGapMs).toBeGreaterThanOrEqual(1_000);
      expect(stderr.match(/killed with SIGKILL/g)).toHaveLength(summary.workerKills);
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    90_000,
  );

  it.concurrent(
    'with --keep leaves all running for other commands, until Ctrl-C',
    async () => {
      const demo = await startDemo(['--payouts', '1', '--keep']);
      await demo.waitFor(/\/metrics\n/);
      const { stdout, stderr } = demo.output();
      expect(stdout).toMatch(/The promises held.*\n[^]*payouts +1 completed \(of 1\)/);
      const env: Record<string, string> = {};
      for (const [, name = '', value = ''] of stderr.matchAll(/^export (\w+)=(.*)$/gm)) env[name] = value;
      const stats = await runCli(['stats', '--json'], { env });
      expect(JSON.parse(stats.stdout)).toMatchObject({ completed: 1, sender: { epoch: 1 } });
      demo.kill('SIGINT', 'all');
      expect(await demo.ended).toBe(0);
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    60_000,
  );

  it.concurrent.each([
    { signal: 'SIGTERM', whom: 'demo', times: 1 },
    { signal: 'SIGINT', whom: 'all', times: 1 },
    { signal: 'SIGTERM', whom: 'demo', times: 2 },
    { signal: 'SIGHUP', whom: 'demo', times: 1 },
  ] as const)(
    'ends all it started on $signal to $whom, $times times',
    async ({ signal, whom, times }) => {
      const demo = await startDemo(['--chaos']);
      await demo.waitFor(/queued → sending/);
      for (let time = 0; time < times; time += 1) {
        demo.kill(signal, whom);
        // Two signals in a row would else arrive as one.
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(await demo.ended).toBe(1);
      expect(demo.output().stdout).toBe('');
      if (signal !== 'SIGHUP' && times === 1)
        expect(demo.output().stderr).toMatch(/payouts: The demo was interrupted; .* stopped\n$/);
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    60_000,
  );

  it.concurrent('says how to get redis-server if it is missing', async () => {
    const demo = await startDemo([], '/nonexistent');
    expect(await demo.ended).toBe(1);
    expect(demo.output().stderr).toMatch(/^payouts: The demo starts its own Redis, .*npm run demo.*\n$/);
    expect(await demo.findRemains()).toEqual(NOTHING);
  });

  it.concurrent.each(['0', '-3', 'many', '1001'])('refuses --payouts %s', async (count) => {
    expect(await runCli(['demo', `--payouts=${count}`])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `payouts: --payouts: must be a whole number from 1 to 1000 (got "${count}")\n`,
    });
  });
});
