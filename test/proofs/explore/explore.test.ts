import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { makeRedisRig } from '../../ledger/support/redis-rig.js';
import { makeWorldRig } from '../../world/world-rig.js';
import { plant } from '../simulation/planted/mistakes.js';
import { type Bounds, explore, listBranches, runScenario } from './explorer.js';
import { orderings, type OrderingsOptions } from './orderings.js';
import { type DeviationKind, scenarioOf, SCENARIOS, type Schedule } from './scenario.js';

const SLOW = scenarioOf('slow');
const QUICK = { ...scenarioOf('single'), faultsUntil: 1_100 };

function boundsOf(...kinds: readonly DeviationKind[]): Bounds {
  return { deviations: 1, kinds, isFocused: false, isPruned: false };
}

describe('a run', () => {
  it.each(Object.keys(SCENARIOS))('of the scenario %s keeps every promise where nothing deviates', async (name) => {
    const { broken, trace } = await runScenario(scenarioOf(name), [], { tracing: true });
    expect(broken).toBeUndefined();
    expect(trace.filter((line) => line.includes('PAID'))).toHaveLength(2 - Number(name === 'single'));
  });

  it('is the same for the same schedule, another for another, and shows what the schedule does', async () => {
    const { steps } = await runScenario(SLOW, []);
    const trace = async (schedule: Schedule) => (await runScenario(SLOW, schedule, { tracing: true })).trace.join('\n');
    const at = (kind: string, label: string) =>
      steps.find((step) => step.kind === kind && step.label === label)?.index ?? NaN;
    const write = at('write', 'wallet-p1');
    const stopped = await trace([{ at: write, kind: 'stop' }]);
    expect(await trace([{ at: write, kind: 'stop' }])).toBe(stopped);
    expect(stopped).toMatch(/A IS STOPPED before A write wallet-p1[^]*A CONTINUES/);
    expect(await trace([{ at: write, kind: 'crash' }])).toMatch(/A IS KILLED[^]*B acquired sender lease/);
    const lost = await trace([{ at: at('arrival', 'wallet-p1'), kind: 'lose' }]);
    expect(lost).toMatch(/LOST[^]*no whole response in time/);
    const held = await trace([{ at: at('command', 'beginSend'), kind: 'hold' }]);
    expect(held).toMatch(/HELD: A command beginSend[^]*LET GO/);
    const older = await trace([{ at: at('response', 'wallet-p1') + 1, kind: 'rollback', changes: 1 }]);
    expect(older).toMatch(/COMES BACK OLDER by 1[^]*operator: adopted/);
  });
});

describe('explore', () => {
  it('runs every schedule within the bounds, once, also branch by branch', async () => {
    const bounds = boundsOf('lose', 'crash');
    const { runs, findings } = await explore(QUICK, bounds);
    expect(findings).toEqual([]);
    expect(runs).toBeGreaterThan(20);
    // Where nothing is held, each branch is one schedule.
    const branches = await listBranches(QUICK, bounds);
    expect(new Set(branches.map(({ schedule }) => JSON.stringify(schedule))).size).toBe(runs - 1);
    const explored = await Promise.all(branches.map(async (branch) => explore(QUICK, bounds, { branch })));
    expect(explored.reduce((sum, branch) => sum + branch.runs, 1)).toBe(runs);
  });

  it('leaves out what was explored before, and still finds what a mistake breaks', async () => {
    const pruned = { deviations: 1, kinds: ['stop'], isFocused: true, isPruned: true } as const;
    const options = { pieces: plant('no guard before the write'), stopAtFirst: true };
    expect((await explore(scenarioOf('plain'), pruned, options)).findings).toHaveLength(1);
    const held = { ...pruned, kinds: ['hold'] as const };
    const all = await explore(SLOW, { ...held, isPruned: false });
    expect((await explore(SLOW, held)).runs).toBeLessThan(all.runs);
  });

  it.each<[string, DeviationKind]>([
    ['resend on timeout', 'lose'],
    ['recovery that requeues sending', 'crash'],
    ['no guard before the write', 'stop'],
    // In the simulation, only some 2,700 seeds come into it.
    ['finish without fencing', 'hold'],
  ])('finds a planted mistake: %s', async (name, kind) => {
    const options = { pieces: plant(name), stopAtFirst: true };
    expect((await explore(SLOW, boundsOf(kind), options)).findings).toHaveLength(1);
  });
});

const ORDERINGS = 60;
const ORDERINGS_AT_MOST = 2_000;

const makeRig = () => makeWorldRig();

describe('whatever the order of sender, polls, recovery, operators and the gateway', () => {
  it.each<[string, number, OrderingsOptions]>([
    ['in memory', ORDERINGS, { makeRig }],
    ['in Redis', ORDERINGS / 4, { makeRig: makeRedisRig }],
  ])('each payout is paid once at most, and none is lost, with the ledger %s', async (_, numRuns, options) => {
    const counts = { begun: 0, paid: 0 };
    await fc.assert(orderings(counts, options), { numRuns });
    expect(counts.paid).toBeGreaterThan(numRuns / 10);
  });

  it.each<[string, RegExp, OrderingsOptions]>([
    ['a begin that ignores the pause', /not stopped:/, { makeRig: makeRigThatIgnoresPauses }],
    // What comes before or instead of the second payment shows it too: paid, and yet queued or rejected.
    ['resend on timeout', /twice:|, but was paid/, { makeRig, pieces: plant('resend on timeout') }],
  ])('notices a planted mistake: %s', async (_, broken, options) => {
    const property = orderings({ begun: 0, paid: 0 }, options);
    const { failed, errorInstance } = await fc.check(property, { numRuns: ORDERINGS_AT_MOST, endOnFailure: true });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(broken);
  });
});

function makeRigThatIgnoresPauses(): ReturnType<typeof makeWorldRig> {
  const rig = makeWorldRig();
  const { ledger } = rig;
  const beginSend = ledger.beginSend.bind(ledger);
  ledger.beginSend = async (begin) => {
    const wasPaused = await ledger.resume();
    const reply = await beginSend(begin);
    if (wasPaused === true) await ledger.pause('as before');
    return reply;
  };
  return rig;
}
