import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pieces } from '../../world/worker.js';
import { runScenario, type Outcome } from './run-scenario.js';
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
  const explorer = new Explorer(scenario, bounds, options);
  await explorer.follow(options.branch ?? ROOT);
  return explorer.exploration;
}

export async function listBranches(scenario: Scenario, bounds: Bounds, pieces?: Pieces): Promise<Branch[]> {
  const { steps } = await runScenario(scenario, [], { describesState: bounds.isPruned, ...(pieces && { pieces }) });
  return [...continuations(scenario, bounds, ROOT, steps)];
}

class Explorer {
  readonly #scenario: Scenario;
  readonly #bounds: Bounds;
  readonly #options: ExploreOptions;
  readonly #findings: Finding[] = [];
  readonly #seen = new Set<string>();
  #runs = 0;

  constructor(scenario: Scenario, bounds: Bounds, options: ExploreOptions) {
    this.#scenario = scenario;
    this.#bounds = bounds;
    this.#options = options;
  }

  get exploration(): Exploration {
    return { runs: this.#runs, findings: this.#findings };
  }

  async follow(branch: Branch): Promise<void> {
    if (this.#isOver()) return;
    const { broken, steps } = await this.#run(branch.schedule);
    if (broken !== undefined) return;
    const isFresh = (step: Step) => step.index > branch.last && this.#isNew(branch.schedule, step);
    const fresh = this.#bounds.isPruned ? steps.filter(isFresh) : steps;
    for (const next of continuations(this.#scenario, this.#bounds, branch, fresh)) {
      await this.follow(next);
      if (this.#isOver()) return;
    }
  }

  #isNew(schedule: Schedule, { state }: Step) {
    const kinds = schedule.map((deviation) => `${deviation.kind}${isWaiting(deviation) ? '*' : ''}`).sort();
    const key = `${kinds.join()} ${state}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }

  async #run(schedule: Schedule): Promise<Outcome> {
    if (this.#runs % TURN_EVERY_RUNS === 0) await nextTurn();
    this.#runs += 1;
    this.#options.onSchedule?.(schedule);
    const { pieces } = this.#options;
    const outcome = await runScenario(this.#scenario, schedule, {
      ...(pieces === undefined ? {} : { pieces }),
      describesState: this.#bounds.isPruned,
    });
    if (outcome.broken !== undefined) this.#findings.push({ schedule, broken: outcome.broken, run: this.#runs });
    return outcome;
  }

  #isOver() {
    return this.#options.stopAtFirst === true && this.#findings.length > 0;
  }
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
