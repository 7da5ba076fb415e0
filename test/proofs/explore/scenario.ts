import {
  describeStep,
  type PendingStep,
  type Progress,
  type StepKind,
  TIMES,
  World,
  type WorldProcess,
} from '../../world/world.js';
import type { Settings } from '../simulation/plan.js';

export type Scenario = Readonly<{
  payouts: number;
  workers: number;
  settings: Settings;
  accounts: number;
  hasOwnJournals: boolean;
  rates: readonly number[];
  wallOffsetsMs: readonly number[];
  lingerMs: readonly number[];
  restartAfterMs: number | undefined;
  rollbackDepths: readonly number[];
  from: number;
  deviationsUntil: number;
  faultsUntil: number;
  endAt: number;
}>;

const SETTINGS: Settings = {
  ...{ intervalMs: 1_002, guardMs: 1_000, leaseMs: 5_000, quarantineMs: 1_000 },
  ...{ inFlightMaxMs: 2_000, resendsForMs: 0, withdrawTimeoutMs: 3_000, commandTimeoutMs: 3_000 },
};

const BASE: Scenario = {
  ...{ payouts: 2, workers: 2, settings: SETTINGS, accounts: 1, hasOwnJournals: false, rates: [], wallOffsetsMs: [] },
  ...{ lingerMs: [], restartAfterMs: undefined, rollbackDepths: [1, 2] },
  ...{ from: 900, deviationsUntil: Infinity, faultsUntil: 25_000, endAt: 90_000 },
};

const SLOW_FIRST = { lingerMs: [SETTINGS.inFlightMaxMs, 1] };
const LONG = { faultsUntil: 60_000, endAt: 180_000 };
const DRIFTING = { rates: [1.0005, 0.9995], ...LONG };

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  plain: BASE,
  single: { ...BASE, workers: 1, payouts: 1, restartAfterMs: 300 },
  slow: { ...BASE, ...SLOW_FIRST },
  'short-lease': {
    ...BASE,
    ...SLOW_FIRST,
    faultsUntil: 5_000,
    settings: { ...SETTINGS, leaseMs: 500, quarantineMs: 0 },
  },
  'cut-off': { ...BASE, settings: { ...SETTINGS, withdrawTimeoutMs: 500 } },
  drifting: {
    ...{ ...BASE, ...DRIFTING, lingerMs: [30_000, 1] },
    settings: { ...SETTINGS, inFlightMaxMs: 30_000 },
    // The first withdrawal begins: for the half minute that it is on its way, there are heartbeats only.
    deviationsUntil: 5_000,
  },
  'drifting-cut-off': { ...BASE, ...DRIFTING, settings: { ...SETTINGS, inFlightMaxMs: 30_000, withdrawTimeoutMs: 5 } },
  'own-journals': {
    ...BASE,
    ...SLOW_FIRST,
    hasOwnJournals: true,
    settings: { ...SETTINGS, quarantineMs: 6_000, commandTimeoutMs: 1_000 },
  },
  'wall-clocks': { ...BASE, ...SLOW_FIRST, wallOffsetsMs: [0, 3_600_000] },
  restart: { ...BASE, ...SLOW_FIRST, restartAfterMs: 300 },
  epochs: { ...BASE, ...SLOW_FIRST, rollbackDepths: [1, 2, 3, 4, 6] },
  accounts: { ...BASE, accounts: 2, payouts: 1, restartAfterMs: 300 },
};

export function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`There is no scenario ${name}`);
  return scenario;
}

/**
 * - `hold`: a message is on its way for longer; `lose`: it never arrives.
 * - `stop`: a process is stopped (SIGSTOP) before the step; `crash`: it is killed.
 * - `rollback`: Redis comes back older, before the step.
 */
export type DeviationKind = (typeof DEVIATION_KINDS)[number];

export const DEVIATION_KINDS = ['hold', 'stop', 'crash', 'lose', 'rollback'] as const;

export type Deviation = Readonly<{
  at: number;
  kind: DeviationKind;
  /** What is held or stopped is let go right before the step of this number; undefined: once everything else is over. */
  until?: number | undefined;
  changes?: number | undefined;
}>;

export type Schedule = readonly Deviation[];

export type Step = Readonly<{
  index: number;
  kind: StepKind;
  label: string;
  process: string;
  state: string;
  mayDeviate: boolean;
}>;

const MATTERS: ReadonlySet<StepKind> = new Set(['command', 'arrival', 'response', 'timeout', 'write', 'mark']);

export function mattersForRelease({ kind }: Step) {
  return MATTERS.has(kind);
}

export function isWaiting({ kind, until }: Deviation) {
  return (kind === 'hold' || kind === 'stop') && until === undefined;
}

const READS = new Set(['readPayout', 'findForgottenSends', 'readSending', 'queued']);

/**
 * Which deviations of a step make a difference. A process that is stopped before it hears a reply stands for most late
 * replies, a read that is lost for one that is repeated.
 */
export function deviationsOf({ kind, label }: Pick<Step, 'kind' | 'label'>): readonly DeviationKind[] {
  switch (kind) {
    case 'command':
      if (READS.has(label)) return ['rollback'];
      return label === 'readSender' ? ['hold', 'rollback'] : ['hold', 'lose', 'rollback'];
    case 'reply':
      return READS.has(label) || label === 'readSender' ? ['stop'] : ['hold', 'lose', 'stop', 'crash'];
    case 'response':
      return ['lose', 'stop', 'crash'];
    case 'arrival':
      return ['hold', 'lose'];
    case 'disk':
    case 'write':
    case 'timer':
      return ['stop', 'crash'];
    default:
      return [];
  }
}

export function focusedDeviationsOf(step: Pick<Step, 'kind' | 'label'>): readonly DeviationKind[] {
  const { kind, label } = step;
  if (kind === 'command') return label === 'acquireLease' || label === 'renewLease' ? ['hold'] : [];
  if (kind === 'reply') return READS.has(label) ? [] : ['stop'];
  return kind === 'disk' ? ['stop'] : [];
}

export interface StateOptions {
  readonly tracing?: boolean;
  /**
   * Each step tells what the run has come to: ledger, journals, book, and what everything waits for. Two moments of a run
   * with the same state differ in time only.
   */
  readonly describesState?: boolean;
}

type Options = Pick<Scenario, 'from' | 'deviationsUntil' | 'faultsUntil' | 'endAt'> & StateOptions;

const MAX_STEPS = 30_000;
const QUIET_MS = 2_500;

/**
 * Steps in the order of their times, but for a schedule that names those that deviate, so that every run can be repeated
 * from it. What is held or stopped is let go right before another step, not after some time: windows of a millisecond are
 * met by construction.
 */
export class ExploredWorld extends World {
  readonly steps: Step[] = [];
  marks: readonly number[] = [];
  rollBack: (changes: number) => boolean = () => false;
  contents: () => string = () => '';
  isSettled: () => boolean = () => false;
  readonly #options: Options;
  #endAt: number;
  readonly #deviations: ReadonlyMap<number, Deviation>;
  readonly #lastDeviation: number;
  #held: Readonly<{ step: PendingStep; until: number }>[] = [];
  #stopped: Readonly<{ process: WorldProcess; until: number }>[] = [];
  #quietSince: number | undefined;

  constructor(schedule: Schedule, options: Options) {
    super(options.tracing);
    this.#options = options;
    this.#endAt = options.endAt;
    this.#deviations = new Map(schedule.map((deviation) => [deviation.at, deviation]));
    this.#lastDeviation = Math.max(-1, ...schedule.map(({ at, until = -1 }) => Math.max(at, until)));
  }

  get isRequestOnItsWay() {
    const isRequest = ({ kind, isGone }: PendingStep) => !isGone && (kind === 'arrival' || kind === 'write');
    return this.pending.some(isRequest) || this.#held.some(({ step }) => isRequest(step));
  }

  extend(ms: number) {
    this.#endAt = this.now + ms;
    this.#quietSince = undefined;
  }

  protected override next(): Progress {
    this.#letGo((_, until) => until === this.count);
    const step = this.pending.pop();
    if (step === undefined) return this.#letGo() ? 'again' : 'over';
    if (step.isGone) return 'again';
    const putBack = (progress: Progress): Progress => {
      this.pending.push(step);
      return progress;
    };
    if (step.at > this.#endAt) return putBack('over');
    const isLate = step.at >= this.#options.faultsUntil;
    const isDue = ({ deadline = Infinity }: PendingStep) => deadline <= step.at;
    if ((isLate && this.#isAnythingWaiting) || this.#held.some((held) => isDue(held.step))) {
      putBack('again');
      if (isLate) this.#letGo();
      else this.#letGo((held) => 'at' in held && isDue(held));
      return 'again';
    }
    this.now = Math.max(this.now, step.at);
    if (step.isDelivered === true && step.process?.takes(step) === false) return 'again';
    if (!this.#isQuiet()) return this.#take(step);
    putBack('again');
    return this.#letGo() ? 'again' : 'over';
  }

  #take(step: PendingStep): Progress {
    const index = this.count;
    if (this.now >= this.#options.from && this.now < this.#options.faultsUntil) {
      const { kind = 'mark', label = '', process } = step;
      const state = this.#options.describesState === true ? this.#describeState(step) : '';
      const mayDeviate = this.now < this.#options.deviationsUntil;
      this.steps.push({ index, kind, label, process: process?.name ?? '', state, mayDeviate });
    }
    this.count += 1;
    if (this.count > MAX_STEPS) throw new Error(`no end after ${MAX_STEPS} steps`);
    const deviation = this.#deviations.get(index);
    if (deviation !== undefined && this.#deviate(deviation, step)) return 'again';
    this.carryOut(step);
    return 'ran';
  }

  #describeState(next: PendingStep) {
    const pending = this.pending.flatMap((step) => (step.isGone || TIMES.has(step.kind) ? [] : [describeStep(step)]));
    const held = this.#held.map(({ step }) => describeStep(step));
    const missed = this.#stopped.map(({ process }) => [process.name, ...process.waiting.map(describeStep)]);
    return [describeStep(next), pending.sort(), held.sort(), missed, this.contents()].join(';');
  }

  #isQuiet() {
    if (this.count <= this.#lastDeviation || !this.isSettled()) {
      this.#quietSince = undefined;
      return false;
    }
    this.#quietSince ??= this.now;
    if (this.now <= this.#quietSince + QUIET_MS) return false;
    this.#quietSince = undefined;
    return true;
  }

  #deviate({ kind, until = Infinity, changes = 1 }: Deviation, step: PendingStep) {
    if (!DEVIATION_KINDS.includes(kind)) throw new Error(`unknown deviation ${kind}`);
    const { process } = step;
    if (kind === 'rollback') return this.#rollBack(changes, step);
    if (kind === 'hold' || kind === 'lose') {
      this.note(() => `${kind === 'hold' ? 'HELD' : 'LOST'}: ${describeStep(step)}`);
      step.onTrouble?.();
      if (kind === 'lose') return true;
      this.#held.push({ step, until });
      this.#addMarks();
      return true;
    }
    if (process === undefined) return false;
    this.note(() => `${process.name} IS ${kind === 'stop' ? 'STOPPED' : 'KILLED'} before ${describeStep(step)}`);
    if (kind === 'crash') {
      process.end();
      return true;
    }
    process.stoppedUntil = Infinity;
    process.waiting.push(step);
    this.#stopped.push({ process, until });
    this.#addMarks();
    return true;
  }

  /** Every connection ends with it: what was on its way to Redis never gets there. */
  #rollBack(changes: number, step: PendingStep) {
    if (!this.rollBack(changes)) return false;
    this.actions?.end('Redis comes back older');
    this.note(() => `Redis COMES BACK OLDER by ${changes} before ${describeStep(step)}`);
    for (const other of [step, ...this.pending, ...this.#held.map((held) => held.step)]) {
      if (other.kind !== 'command' || other.isGone) continue;
      other.isGone = true;
      other.onTrouble?.();
    }
    this.#held = this.#held.filter((held) => !held.step.isGone);
    return true;
  }

  #addMarks() {
    for (const ms of this.marks) this.after(ms, () => undefined, { kind: 'mark', label: `${ms} ms later` });
  }

  get #isAnythingWaiting() {
    return this.#held.length + this.#stopped.length > 0;
  }

  #letGo(isMeant: (waiting: PendingStep | WorldProcess, until: number) => boolean = () => true) {
    if (!this.#isAnythingWaiting) return false;
    const held = this.#held.filter(({ step, until }) => isMeant(step, until));
    const stopped = this.#stopped.filter(({ process, until }) => isMeant(process, until));
    this.#held = this.#held.filter((each) => !held.includes(each));
    this.#stopped = this.#stopped.filter((each) => !stopped.includes(each));
    // Right before whatever is next, and at its deadline at the latest.
    for (const { step } of held) {
      this.note(() => `LET GO: ${describeStep(step)}`);
      step.at = Math.max(this.now, Math.min(this.#nextAt, step.deadline ?? Infinity));
      step.order = -1;
      this.add(step);
    }
    for (const { process } of stopped) {
      this.note(() => `${process.name} CONTINUES`);
      process.stoppedUntil = 0;
      const at = this.#nextAt;
      for (const [index, step] of process.waiting.entries()) {
        this.add(Object.assign(step, { at, order: index - process.waiting.length }));
      }
      process.waiting = [];
    }
    return true;
  }

  get #nextAt() {
    return Math.max(this.now, this.pending.at(-1)?.at ?? this.now);
  }
}
