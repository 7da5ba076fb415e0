import { describeStep, StepQueue, type PendingStep, type StepOptions, type WorldProcess } from './step-queue.js';
import { DEVIATION_KINDS, type Deviation, type Schedule, type Step, type StepKind } from './schedule.js';

export interface ExploredWorldOptions {
  readonly schedule: Schedule;
  /** Steps before this time, in ms, are the same in every run. */
  readonly from: number;
  /** Steps from this time on, in ms, do not deviate; what waits may be let go there. */
  readonly deviationsUntil: number;
  /** From then on nothing deviates, and what waits is let go. */
  readonly faultsUntil: number;
  readonly endAt: number;
  readonly tracing?: boolean;
  /**
   * Each step tells what the run has come to: ledger, journals, book, and what everything waits for. Two moments of a run
   * with the same state differ in time only.
   */
  readonly describesState?: boolean;
}

/** More steps than any sound run takes. */
const MAX_STEPS = 30_000;
/** They say when something happens; what happens then is a step of its own. */
const TIMES: ReadonlySet<StepKind> = new Set(['timer', 'timeout', 'mark']);
/** A run is over once nothing is left to do for this long. */
const QUIET_MS = 2_500;

/**
 * Virtual time in which every event is a numbered step. One run without deviations is deterministic; a schedule names the
 * steps that deviate, so that every run can be repeated from it.
 *
 * What is held or stopped is let go right before another step, not after some time: windows of a millisecond are met by
 * construction.
 */
export class ExploredWorld {
  now = 0;
  /** Steps from which a longer schedule may deviate, or before which it may let go of what waits. */
  readonly steps: Step[] = [];
  readonly trace: string[] | undefined;
  failure: string | undefined;
  /** Moments, in ms after something was held or stopped, at which it may be let go. */
  marks: readonly number[] = [];
  /** Makes Redis older. @returns whether it could */
  rollBack: (changes: number) => boolean = () => false;
  /** What ledgers, journals and the gateway's book hold. */
  contents: () => string = () => '';
  /** Nothing is left to do. */
  isSettled: () => boolean = () => false;
  readonly #options: ExploredWorldOptions;
  #endAt: number;
  readonly #deviations: ReadonlyMap<number, Deviation>;
  readonly #lastDeviation: number;
  readonly #pending = new StepQueue();
  #held: { readonly step: PendingStep; readonly until: number }[] = [];
  #stopped: { readonly process: WorldProcess; readonly until: number }[] = [];
  #count = 0;
  #order = 0;
  #quietSince: number | undefined;

  constructor(options: ExploredWorldOptions) {
    this.#options = options;
    this.#endAt = options.endAt;
    this.trace = options.tracing === true ? [] : undefined;
    this.#deviations = new Map(options.schedule.map((deviation) => [deviation.at, deviation]));
    this.#lastDeviation = Math.max(-1, ...options.schedule.map(({ at, until = -1 }) => Math.max(at, until)));
  }

  note(line: () => string): void {
    this.trace?.push(`${String(this.#count).padStart(4)} ${this.now.toFixed(2).padStart(10)} ${line()}`);
  }

  /** The run has broken a promise; the first one counts. */
  fail(reason: string): void {
    this.note(() => `BROKEN: ${reason}`);
    this.failure ??= reason;
  }

  /** @param delayMs - true time */
  after(delayMs: number, options: StepOptions): PendingStep {
    const step = { ...options, at: this.now + Math.max(0, delayMs), order: (this.#order += 1), isGone: false };
    this.#pending.add(step);
    return step;
  }

  /** Whether a request is on its way to the gateway, or about to be. */
  get isRequestOnItsWay(): boolean {
    const isRequest = ({ kind, isGone }: PendingStep): boolean => !isGone && (kind === 'arrival' || kind === 'write');
    return this.#pending.steps.some(isRequest) || this.#held.some(({ step }) => isRequest(step));
  }

  /** Lets it run for longer. */
  extend(ms: number): void {
    this.#endAt = this.now + ms;
    this.#quietSince = undefined;
  }

  /** Runs until nothing is left to do, or the time is over. @throws Error when there is no end */
  async run(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const next = (): void => {
        try {
          for (;;) {
            const progress = this.failure === undefined ? this.#next() : 'over';
            if (progress === 'over') {
              resolve();
              return;
            }
            if (progress === 'ran') break;
          }
          // A tick that is asked for in a microtask runs after all microtasks: the step is followed to its end.
          queueMicrotask(() => {
            process.nextTick(next);
          });
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      queueMicrotask(next);
    });
  }

  #next(): 'ran' | 'again' | 'over' {
    this.#letGoBefore(this.#count);
    const step = this.#pending.take();
    if (step === undefined) return this.#letGoAll() ? 'again' : 'over';
    if (step.isGone) return 'again';
    if (step.at > this.#endAt) {
      this.#pending.putBack(step);
      return 'over';
    }
    const isLate = step.at >= this.#options.faultsUntil;
    if ((isLate && this.#isAnythingWaiting) || this.#isHeldDueBefore(step)) {
      this.#pending.putBack(step);
      if (isLate) this.#letGoAll();
      else this.#letGoDue(step);
      return 'again';
    }
    this.now = Math.max(this.now, step.at);
    if (step.isDelivered === true && step.process?.isDead === true) return 'again';
    if (step.isDelivered === true && step.process?.isStopped === true) {
      step.process.waiting.push(step);
      return 'again';
    }
    if (this.#isQuiet()) {
      this.#pending.putBack(step);
      return this.#letGoAll() ? 'again' : 'over';
    }
    return this.#take(step);
  }

  #take(step: PendingStep): 'ran' | 'again' {
    const index = this.#count;
    if (this.now >= this.#options.from && this.now < this.#options.faultsUntil) {
      const { kind, label, process } = step;
      const state = this.#options.describesState === true ? this.#describeState(step) : '';
      const mayDeviate = this.now < this.#options.deviationsUntil;
      this.steps.push({ index, kind, label, process: process?.name ?? '', state, mayDeviate });
    }
    this.#count += 1;
    if (this.#count > MAX_STEPS) throw new Error(`no end after ${MAX_STEPS} steps`);
    const deviation = this.#deviations.get(index);
    if (deviation !== undefined && this.#deviate(deviation, step)) return 'again';
    this.note(() => describeStep(step));
    step.run();
    return 'ran';
  }

  /** What is about to happen, what else is on its way, and what stopped processes have missed. */
  #describeState(next: PendingStep): string {
    const pending = this.#pending.steps.flatMap((step) =>
      step.isGone || TIMES.has(step.kind) ? [] : [describeStep(step)],
    );
    const held = this.#held.map(({ step }) => describeStep(step));
    const missed = this.#stopped.map(({ process }) => [process.name, ...process.waiting.map(describeStep)]);
    return [describeStep(next), pending.sort(), held.sort(), missed, this.contents()].join(';');
  }

  #isQuiet(): boolean {
    if (this.#count <= this.#lastDeviation || !this.isSettled()) {
      this.#quietSince = undefined;
      return false;
    }
    this.#quietSince ??= this.now;
    if (this.now <= this.#quietSince + QUIET_MS) return false;
    this.#quietSince = undefined;
    return true;
  }

  #deviate({ kind, until = Infinity, changes = 1 }: Deviation, step: PendingStep): boolean {
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
      process.isDead = true;
      process.onDeath?.();
      return true;
    }
    process.isStopped = true;
    process.waiting.push(step);
    this.#stopped.push({ process, until });
    this.#addMarks();
    return true;
  }

  /** Every connection ends with it: what was on its way to Redis never gets there. */
  #rollBack(changes: number, step: PendingStep): boolean {
    if (!this.rollBack(changes)) return false;
    this.note(() => `Redis COMES BACK OLDER by ${changes} before ${describeStep(step)}`);
    for (const other of [step, ...this.#pending.steps, ...this.#held.map((held) => held.step)]) {
      if (other.kind !== 'command' || other.isGone) continue;
      other.isGone = true;
      other.onTrouble?.();
    }
    this.#held = this.#held.filter((held) => !held.step.isGone);
    return true;
  }

  #addMarks(): void {
    for (const ms of this.marks) this.after(ms, { kind: 'mark', label: `${ms} ms later`, run: () => undefined });
  }

  get #isAnythingWaiting(): boolean {
    return this.#held.length + this.#stopped.length > 0;
  }

  #isHeldDueBefore({ at }: PendingStep): boolean {
    return this.#held.some(({ step }) => (step.deadline ?? Infinity) <= at);
  }

  #letGoDue(next: PendingStep): void {
    const due = this.#held.filter(({ step }) => (step.deadline ?? Infinity) <= next.at);
    for (const { step } of due) this.#release(step, step.deadline ?? next.at);
    this.#held = this.#held.filter((held) => !due.includes(held));
  }

  #letGoBefore(index: number): void {
    for (const { step } of this.#held.filter(({ until }) => until === index)) this.#release(step, this.#nextAt);
    this.#held = this.#held.filter(({ until }) => until !== index);
    for (const { process } of this.#stopped.filter(({ until }) => until === index)) this.#resume(process);
    this.#stopped = this.#stopped.filter(({ until }) => until !== index);
  }

  #letGoAll(): boolean {
    if (!this.#isAnythingWaiting) return false;
    const [held, stopped] = [this.#held, this.#stopped];
    this.#held = [];
    this.#stopped = [];
    for (const { step } of held) this.#release(step, this.#nextAt);
    for (const { process } of stopped) this.#resume(process);
    return true;
  }

  /** When the next step runs. */
  get #nextAt(): number {
    return Math.max(this.now, this.#pending.nextAt ?? this.now);
  }

  /** Runs it before whatever is next. */
  #release(step: PendingStep, at: number): void {
    this.note(() => `LET GO: ${describeStep(step)}`);
    step.at = Math.max(this.now, Math.min(at, step.deadline ?? Infinity));
    step.order = -1;
    this.#pending.add(step);
  }

  #resume(process: WorldProcess): void {
    this.note(() => `${process.name} CONTINUES`);
    process.isStopped = false;
    const at = this.#nextAt;
    for (const [index, step] of process.waiting.entries()) {
      step.at = at;
      step.order = index - process.waiting.length;
      this.#pending.add(step);
    }
    process.waiting = [];
  }
}
