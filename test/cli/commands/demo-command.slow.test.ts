import { describe, expect, it } from '@jest/globals';
import type { DemoSummary } from '../../../src/cli/demo/demo-summary.js';
import type { ForgeSummary } from '../../../src/cli/demo/forge/forge-summary.js';
import type { PolicySummary } from '../../../src/cli/demo/policy/policy-summary.js';
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

  it.concurrent(
    'with --forge every attack succeeds without keys, and none with them',
    async () => {
      const demo = await startDemo(['--forge', '--json']);
      const code = await demo.ended;
      const { stdout, stderr } = demo.output();
      expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
      const { ok, problems, attacks, books } = JSON.parse(stdout) as ForgeSummary;
      expect({ ok, problems }).toEqual({ ok: true, problems: [] });
      expect(attacks.map(({ attack, withKeys }) => [attack, withKeys.what])).toEqual([
        ['address of a queued payout altered', 'held: bad_signature, event tampering'],
        ['amount of a queued payout altered', 'held: bad_signature, event tampering'],
        ['payout invented', 'held: unsigned'],
        ['payout copied under a new id', 'held: bad_signature, event tampering'],
        ['`completed` set back to `queued`', 'held: sent_before, event tampering'],
        ['paid one shown as `rejected`', 'no receipt: the shop asked the gateway, paid once'],
        ['never paid, shown as `completed`', 'verified: false, the shop did not book it'],
        ["breaker's pause lifted", 'still paused: nobody signed the end of it'],
      ]);
      expect(attacks.map(({ withoutKeys }) => withoutKeys.succeeded)).toEqual(attacks.map(() => true));
      expect(books.withKeys.map(({ addressTo, isAsOrdered }) => [addressTo, isAsOrdered])).toEqual([
        ['customer-3', true],
        ['customer-4', true],
        ['customer-5', true],
      ]);
      expect(books.withoutKeys).toHaveLength(10);
      expect(stderr).toMatch(/ s {2}without keys {2}attacker: payout invented\n/);
      expect(stderr).not.toContain('\u001b');
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    120_000,
  );

  it.concurrent('with --forge ends all it started on Ctrl-C', async () => {
    const demo = await startDemo(['--forge']);
    await demo.waitFor(/with keys {5}the worker starts/);
    demo.kill('SIGINT', 'all');
    expect(await demo.ended).toBe(1);
    expect(demo.output().stdout).toBe('');
    expect(demo.output().stderr).toMatch(/payouts: The demo was interrupted; .* stopped\n$/);
    expect(await demo.findRemains()).toEqual(NOTHING);
  });

  it.concurrent(
    'with --policy each rule holds, and the thief gets what two small payouts come to',
    async () => {
      const demo = await startDemo(['--policy', '--json']);
      const code = await demo.ended;
      const { stdout, stderr } = demo.output();
      expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
      const { rules, stolen } = JSON.parse(stdout) as PolicySummary;
      expect(rules.filter(({ held }) => !held)).toEqual([]);
      expect(stolen).toEqual({ ordered: '53600', paid: '1800' });
      expect(stderr).toMatch(/ s {2}Bob approves it\n/);
      expect(await demo.findRemains()).toEqual(NOTHING);
    },
    120_000,
  );

  it.concurrent.each(['--forge', '--chaos', '--keep', '--payouts=3'])('refuses --policy with %s', async (option) => {
    const { code, stderr } = await runCli(['demo', '--policy', option]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("'--policy'") as unknown });
  });

  it.concurrent.each(['--chaos', '--keep', '--payouts=3'])('refuses --forge with %s', async (option) => {
    const { code, stderr } = await runCli(['demo', '--forge', option]);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("'--forge'") as unknown });
  });

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
