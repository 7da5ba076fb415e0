import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pieces } from '../../world/worker.js';
import { runScenario } from './run-scenario.js';
import {
  type Scenario,
  deviationsOf,
  focusedDeviationsOf,
  isWaiting,
  mattersForRelease,
  type Deviation,
  type DeviationKind,
  type Schedule,
  type Step,
} from './scenario.js';

export type Bounds = Readonly<{
  deviations: number;
  kinds: readonly DeviationKind[];
  isFocused: boolean;
  /** Of moments at which the same has happened, whatever came before, the first stands for all. */
  isPruned: boolean;
}>;

export type Finding = Readonly<{ schedule: Schedule; broken: string; run: number }>;

export interface Exploration {
  readonly runs: number;
  readonly findings: readonly Finding[];
}

type ExploreOptions = Readonly<{
  branch?: Branch | undefined;
  pieces?: Pieces | undefined;
  onSchedule?: (schedule: Schedule) => void;
  stopAtFirst?: boolean;
}>;

const MOST_OF_A_KIND: Readonly<Record<DeviationKind, number>> = { hold: 2, stop: 2, crash: 1, lose: 1, rollback: 2 };
/** Between runs the event loop gets a turn, without which nothing that was collected is ever given free. */
const TURN_EVERY_RUNS = 64;

export interface Branch {
  readonly schedule: Schedule;
  readonly last: number;
}

const ROOT: Branch = { schedule: [], last: -1 };

/**
 * Runs a scenario under every schedule within the bounds. Deviations, and the moments at which what waits is let go, are
 * chosen in the order of the steps, so that events which a deviation causes can deviate too.
 */
export async function explore(scenario: Scenario, bounds: Bounds, options: ExploreOptions = {}): Promise<Exploration> {
  const { pieces, onSchedule, stopAtFirst = false } = options;
  const findings: Finding[] = [];
  const seen = new Set<string>();
  let runs = 0;
  const isOver = () => stopAtFirst && findings.length > 0;

  const isNew = (schedule: Schedule, { state }: Step) => {
    const kinds = schedule.map((deviation) => `${deviation.kind}${isWaiting(deviation) ? '*' : ''}`).sort();
    const before = seen.size;
    return seen.add(`${kinds.join()} ${state}`).size > before;
  };

  const follow = async (branch: Branch): Promise<void> => {
    if (isOver()) return;
    const { schedule, last } = branch;
    if (runs % TURN_EVERY_RUNS === 0) await nextTurn();
    runs += 1;
    onSchedule?.(schedule);
    const { broken, steps } = await runScenario(scenario, schedule, {
      ...(pieces && { pieces }),
      describesState: bounds.isPruned,
    });
    if (broken !== undefined) {
      findings.push({ schedule, broken, run: runs });
      return;
    }
    const fresh = bounds.isPruned ? steps.filter((step) => step.index > last && isNew(schedule, step)) : steps;
    for (const next of continuations(scenario, bounds, branch, fresh)) {
      await follow(next);
      if (isOver()) return;
    }
  };

  await follow(options.branch ?? ROOT);
  return { runs, findings };
}

export async function listBranches(scenario: Scenario, bounds: Bounds, pieces?: Pieces): Promise<Branch[]> {
  const { steps } = await runScenario(scenario, [], { describesState: bounds.isPruned, ...(pieces && { pieces }) });
  return [...continuations(scenario, bounds, ROOT, steps)];
}

function* continuations(
  scenario: Scenario,
  { deviations, kinds, isFocused }: Bounds,
  { schedule, last }: Branch,
  steps: readonly Step[],
): Generator<Branch> {
  const waiting = schedule.filter(isWaiting);
  const isFull = schedule.length === deviations;
  if (isFull && waiting.length === 0) return;
  for (const step of steps) {
    if (step.index <= last) continue;
    yield* releases(schedule, waiting, step);
    if (isFull || !step.mayDeviate) continue;
    const possible = isFocused ? focusedDeviationsOf(step) : deviationsOf(step);
    for (const kind of possible.filter((candidate) => kinds.includes(candidate) && hasRoom(schedule, candidate))) {
      for (const deviation of variants(scenario, step, kind)) {
        yield { schedule: [...schedule, deviation], last: step.index };
      }
    }
  }
}

function* releases(schedule: Schedule, waiting: Schedule, step: Step): Generator<Branch> {
  if (!mattersForRelease(step)) return;
  for (const deviation of waiting.filter(({ at }) => step.index > at + 1)) {
    yield {
      schedule: schedule.map((other) => (other === deviation ? { ...other, until: step.index } : other)),
      last: step.index - 1,
    };
  }
}

function hasRoom(schedule: Schedule, kind: DeviationKind) {
  return schedule.filter((deviation) => deviation.kind === kind).length < MOST_OF_A_KIND[kind];
}

function variants(scenario: Scenario, { index }: Step, kind: DeviationKind): Deviation[] {
  if (kind !== 'rollback') return [{ at: index, kind }];
  return scenario.rollbackDepths.map((changes) => ({ at: index, kind, changes }));
}
