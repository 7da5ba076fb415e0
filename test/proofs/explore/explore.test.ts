import { describe, expect, it } from '@jest/globals';
import { soundPieces } from '../../world/worker.js';
import { mistakes } from '../simulation/planted/mistakes.js';
import { explore, listBranches } from './explorer.js';
import { runScenario } from './run-scenario.js';
import { SCENARIOS, scenarioOf } from './scenario.js';
import type { DeviationKind, Schedule } from './schedule.js';

const QUICK = { ...scenarioOf('single'), faultsUntil: 1_100 };

describe('a run', () => {
  it.each(Object.keys(SCENARIOS))('of the scenario %s keeps every promise where nothing deviates', async (name) => {
    const { broken, trace } = await runScenario(scenarioOf(name), [], { tracing: true });
    expect(broken).toBeUndefined();
    expect(trace.filter((line) => line.includes('PAID'))).toHaveLength(2 - Number(name === 'single'));
  });

  it('is the same for the same schedule, and another for another', async () => {
    const schedule: Schedule = [{ at: 40, kind: 'stop', until: 70 }];
    const again = JSON.parse(JSON.stringify(schedule)) as Schedule;
    const [first, second, other] = await Promise.all(
      [schedule, again, []].map(async (given) => runScenario(scenarioOf('slow'), given, { tracing: true })),
    );
    expect(second).toEqual(first);
    expect(other?.trace).not.toEqual(first?.trace);
  });

  it('that is repeated shows what a schedule does', async () => {
    const { steps } = await runScenario(scenarioOf('slow'), []);
    const at = (kind: string, label: string): number =>
      steps.find((step) => step.kind === kind && step.label === label)?.index ?? NaN;
    const trace = async (schedule: Schedule): Promise<string> =>
      (await runScenario(scenarioOf('slow'), schedule, { tracing: true })).trace.join('\n');
    const write = at('write', 'wallet-p1');
    expect(await trace([{ at: write, kind: 'stop' }])).toMatch(/A IS STOPPED before A write wallet-p1[^]*A CONTINUES/);
    expect(await trace([{ at: write, kind: 'crash' }])).toMatch(/A IS KILLED[^]*B: acquired sender lease/);
    expect(await trace([{ at: at('arrival', 'wallet-p1'), kind: 'lose' }])).toMatch(/LOST[^]*no response in time/);
    expect(await trace([{ at: at('command', 'beginSend'), kind: 'hold' }])).toMatch(
      /HELD: A command beginSend[^]*LET GO/,
    );
    expect(await trace([{ at: at('response', 'wallet-p1') + 1, kind: 'rollback', changes: 1 }])).toMatch(
      /COMES BACK OLDER by 1[^]*operator: adopted/,
    );
  });
});

describe('explore', () => {
  it('runs every schedule within the bounds, once', async () => {
    const seen: string[] = [];
    const bounds = { deviations: 1, kinds: ['lose', 'crash'] as const, isFocused: false, isPruned: false };
    const { runs, findings } = await explore(QUICK, bounds, {
      onSchedule: (schedule) => seen.push(JSON.stringify(schedule)),
    });
    expect(findings).toEqual([]);
    expect(new Set(seen).size).toBe(runs);
    expect(runs).toBeGreaterThan(20);
  });

  it('comes to the same in its branches, each by itself', async () => {
    const bounds = { deviations: 1, kinds: ['lose', 'stop'] as const, isFocused: false, isPruned: false };
    const branches = await listBranches(QUICK, bounds);
    const explored = await Promise.all(branches.map(async (branch) => explore(QUICK, bounds, { branch })));
    const inBranches = explored.reduce((sum, { runs }) => sum + runs, 0);
    expect(inBranches + 1).toBe((await explore(QUICK, bounds)).runs);
  });

  it('leaves out what was explored before, and still finds what a mistake breaks', async () => {
    const bounds = { deviations: 1, kinds: ['stop'] as const, isFocused: true, isPruned: true };
    const plant = mistakes.find(({ name }) => name === 'no guard before the write')?.pieces;
    const options = { pieces: { ...soundPieces, ...plant }, stopAtFirst: true };
    expect((await explore(scenarioOf('slow'), bounds, options)).findings).toHaveLength(1);
    const held = { ...bounds, kinds: ['hold'] as const };
    const pruned = await explore(scenarioOf('slow'), held);
    const all = await explore(scenarioOf('slow'), { ...held, isPruned: false });
    expect(pruned.runs).toBeLessThan(all.runs);
  });

  it.each<[string, DeviationKind]>([
    ['resend on timeout', 'lose'],
    ['recovery that requeues sending', 'crash'],
    ['no guard before the write', 'stop'],
    ['finish without fencing', 'hold'],
  ])('finds a planted mistake: %s', async (name, kind) => {
    const plant = mistakes.find((mistake) => mistake.name === name)?.pieces;
    expect(plant).toBeDefined();
    const bounds = { deviations: 1, kinds: [kind], isFocused: false, isPruned: false };
    const options = { pieces: { ...soundPieces, ...plant }, stopAtFirst: true };
    expect((await explore(scenarioOf('slow'), bounds, options)).findings).toHaveLength(1);
  });
});
