import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pieces } from '../simulation/pieces.js';
import { runScenario, type Outcome } from './run-scenario.js';
import type { Scenario } from './scenario.js';
import {
  deviationsOf,
  focusedDeviationsOf,
  isWaiting,
  mattersForRelease,
  type Deviation,
  type DeviationKind,
  type Schedule,
  type Step,
} from './schedule.js';

export interface Bounds {
  /** Deviations in a schedule; to let go of what is held or stopped costs nothing. */
  readonly deviations: number;
  readonly kinds: readonly DeviationKind[];
  /** Only the deviations by which two workers meet, see {@link focusedDeviationsOf}. */
  readonly isFocused: boolean;
  /** At most this many runs; what is left out is reported. */
  readonly maxRuns: number;
}

/** A schedule that breaks a promise. */
export interface Finding {
  readonly schedule: Schedule;
  readonly broken: string;
  /** The number of the run that found it. */
  readonly run: number;
}

export interface Exploration {
  readonly runs: number;
  readonly findings: readonly Finding[];
  /** Every schedule within the bounds was run. */
  readonly isComplete: boolean;
}

export interface ExploreOptions {
  readonly pieces?: Pieces | undefined;
  /** Told after every run how many there were. */
  readonly onRun?: (runs: number) => void;
  /** Told before every run. */
  readonly onSchedule?: (schedule: Schedule) => void;
  readonly stopAtFirst?: boolean;
}

/** So many of a kind are in one schedule. */
const MOST_OF_A_KIND: Readonly<Record<DeviationKind, number>> = { hold: 2, stop: 2, crash: 1, lose: 1, rollback: 2 };
/** Between runs the event loop gets a turn, without which nothing that was collected is ever given free. */
const TURN_EVERY_RUNS = 64;

/**
 * Runs a scenario under every schedule within the bounds. Deviations, and the moments at which what waits is let go, are
 * chosen in the order of the steps, so that events which a deviation causes can deviate too.
 */
export async function explore(scenario: Scenario, bounds: Bounds, options: ExploreOptions = {}): Promise<Exploration> {
  const explorer = new Explorer(scenario, bounds, options);
  await explorer.extend([], -1);
  return explorer.exploration;
}

class Explorer {
  readonly #scenario: Scenario;
  readonly #bounds: Bounds;
  readonly #options: ExploreOptions;
  readonly #findings: Finding[] = [];
  #runs = 0;
  #isCut = false;

  constructor(scenario: Scenario, bounds: Bounds, options: ExploreOptions) {
    this.#scenario = scenario;
    this.#bounds = bounds;
    this.#options = options;
  }

  get exploration(): Exploration {
    return { runs: this.#runs, findings: this.#findings, isComplete: !this.#isCut };
  }

  /** Runs a schedule, and all that continue it after the step `last`. */
  async extend(schedule: Schedule, last: number): Promise<void> {
    if (this.#isOver()) return;
    const { broken, steps } = await this.#run(schedule);
    if (broken !== undefined) return;
    const waiting = schedule.filter(isWaiting);
    const isFull = schedule.length === this.#bounds.deviations;
    if (isFull && waiting.length === 0) return;
    for (const step of steps) {
      if (step.index <= last) continue;
      await this.#letGo(schedule, waiting, step);
      if (!isFull) await this.#deviate(schedule, step);
      if (this.#isOver()) return;
    }
  }

  async #letGo(schedule: Schedule, waiting: Schedule, step: Step): Promise<void> {
    if (!mattersForRelease(step)) return;
    for (const deviation of waiting) {
      if (step.index <= deviation.at + 1) continue;
      await this.extend(
        schedule.map((other) => (other === deviation ? { ...other, until: step.index } : other)),
        step.index - 1,
      );
    }
  }

  async #deviate(schedule: Schedule, step: Step): Promise<void> {
    const { kinds, isFocused } = this.#bounds;
    const possible = isFocused ? focusedDeviationsOf(step) : deviationsOf(step);
    for (const kind of possible) {
      const used = schedule.filter((deviation) => deviation.kind === kind).length;
      if (!kinds.includes(kind) || used >= MOST_OF_A_KIND[kind]) continue;
      for (const deviation of this.#variants(step, kind)) await this.extend([...schedule, deviation], step.index);
    }
  }

  #variants({ index }: Step, kind: DeviationKind): Deviation[] {
    if (kind !== 'rollback') return [{ at: index, kind }];
    return this.#scenario.rollbackDepths.map((changes) => ({ at: index, kind, changes }));
  }

  async #run(schedule: Schedule): Promise<Outcome> {
    if (this.#runs % TURN_EVERY_RUNS === 0) await nextTurn();
    this.#runs += 1;
    this.#options.onSchedule?.(schedule);
    const { pieces } = this.#options;
    const outcome = await runScenario(this.#scenario, schedule, pieces === undefined ? {} : { pieces });
    if (outcome.broken !== undefined) this.#findings.push({ schedule, broken: outcome.broken, run: this.#runs });
    this.#options.onRun?.(this.#runs);
    return outcome;
  }

  #isOver(): boolean {
    if (this.#options.stopAtFirst === true && this.#findings.length > 0) return true;
    if (this.#runs < this.#bounds.maxRuns) return false;
    this.#isCut = true;
    return true;
  }
}
