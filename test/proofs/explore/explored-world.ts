import { describeStep, TIMES, World, type PendingStep, type Progress, type WorldProcess } from '../../world/world.js';
import { type Scenario, DEVIATION_KINDS, type Deviation, type Schedule, type Step } from './scenario.js';

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
