import type { Clock } from '../../src/base/clock.js';
import type { Random } from '../doubles/random.js';
import type { Situations } from '../proofs/simulation/situations.js';
import type { ActionLog } from './action-log.js';

/**
 * - `command`: Redis carries out a command; `reply`: its reply reaches the process.
 * - `timer`, `disk`: a process wakes up; its journal has been read, written or synced.
 * - `write`: the last check and the first byte of a withdrawal; `arrival`: it reaches the gateway; `response`.
 * - `timeout`: a process stops waiting; `mark`: a moment at which something may be let go or begin.
 */
export type StepKind = 'command' | 'reply' | 'timer' | 'disk' | 'write' | 'arrival' | 'response' | 'timeout' | 'mark';

export const TIMES: ReadonlySet<StepKind | undefined> = new Set(['timer', 'timeout', 'mark'] as const);

export type About = Readonly<{
  kind?: StepKind;
  label?: string;
  process?: WorldProcess;
  isDelivered?: boolean;
  deadline?: number;
  onTrouble?: () => void;
}>;

export interface PendingStep extends About {
  readonly run: () => unknown;
  at: number;
  order: number;
  isGone: boolean;
}

export type Progress = 'ran' | 'again' | 'over';

const TYPICAL: Pick<Random, 'chance' | 'next' | 'between' | 'heavyTail' | 'pick'> = {
  chance: () => false,
  next: () => 0,
  between: (least) => 2 * least,
  heavyTail: (typical) => typical,
  pick: ([first]) => first as never,
};

/** Virtual time in which every event is a step. A class that extends it is a scheduler: it says which step is next. */
export abstract class World {
  now = 0;
  failure: string | undefined;
  readonly trace: string[] | undefined;
  readonly random: typeof TYPICAL = TYPICAL;
  readonly hangs: Readonly<{ random: typeof TYPICAL; rate: number }> = { random: TYPICAL, rate: 0 };
  readonly situations: Situations | undefined;
  /** Set to compare the run with the model of a send. */
  actions: ActionLog | undefined;
  /** Faults come by chance; elsewhere a timer that nothing needs would be one more step to deviate from. */
  readonly isByChance: boolean = false;
  protected readonly pending: PendingStep[] = [];
  protected count = 0;
  #order = 0;
  #running: Promise<unknown> | undefined;

  constructor(isTracing = false) {
    this.trace = isTracing ? [] : undefined;
  }

  get mayFail() {
    return false;
  }

  wallNow() {
    return WALL_START + Math.round(this.now);
  }

  fault(probability: number) {
    return this.mayFail && this.random.chance(probability);
  }

  note(line: () => string) {
    this.trace?.push(`${String(this.count).padStart(4)} ${this.now.toFixed(2).padStart(10)} ${line()}`);
  }

  fail(reason: string) {
    this.note(() => `BROKEN: ${reason}`);
    this.failure ??= reason;
  }

  after(delayMs: number, run: () => unknown, about?: About): PendingStep {
    const step = { ...about, run, at: this.now + Math.max(0, delayMs), order: (this.#order += 1), isGone: false };
    this.add(step);
    return step;
  }

  async run() {
    await new Promise<void>((resolve, reject) => {
      // A tick that is asked for in a microtask runs after all microtasks: the step is followed to its end.
      const later = () => {
        process.nextTick(next);
      };
      const next = () => {
        try {
          let progress: Progress = 'again';
          while (progress === 'again') progress = this.failure === undefined ? this.next() : 'over';
          if (progress === 'over') resolve();
          else if (this.#running === undefined) queueMicrotask(later);
          else void this.#running.then(later, reject);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      queueMicrotask(next);
    });
  }

  protected abstract next(): Progress;

  protected carryOut(step: PendingStep) {
    this.note(() => describeStep(step));
    const running = step.run();
    this.#running = running instanceof Promise ? running : undefined;
  }

  protected add(step: PendingStep) {
    const { at, order } = step;
    const index = this.pending.findLastIndex((other) => other.at > at || (other.at === at && other.order > order));
    this.pending.splice(index + 1, 0, step);
  }
}

export function describeStep({ process, kind, label }: About) {
  return `${process?.name ?? '-'} ${kind ?? ''} ${label ?? ''}`;
}

type ProcessOptions = Readonly<{
  world: World;
  name: string;
  rate?: number | undefined;
  earlyTimers?: number;
  wallOffsetMs?: number | undefined;
}>;

export const WALL_START = Date.UTC(2030, 0, 1);
const LONG_SLEEP_MS = 10;

/** A process: it has clocks of its own and can be stopped (SIGSTOP: its clocks continue) or killed. */
export class WorldProcess implements Clock {
  readonly world: World;
  readonly name: string;
  wallOffsetMs: number;
  isDead = false;
  stoppedUntil = 0;
  waiting: PendingStep[] = [];
  onDeath: () => void = () => undefined;
  readonly #rate: number;
  readonly #earlyTimers: number;
  readonly #offsetMs: number;

  constructor({ world, name, rate = 1, earlyTimers = 0, wallOffsetMs = 0 }: ProcessOptions) {
    this.world = world;
    this.name = name;
    this.#rate = rate;
    this.#earlyTimers = earlyTimers;
    this.wallOffsetMs = wallOffsetMs;
    this.#offsetMs = world.random.between(0, 1e6);
  }

  now() {
    return this.#offsetMs + this.world.now * this.#rate;
  }

  wallNow() {
    return Math.round(WALL_START + this.world.now + this.wallOffsetMs);
  }

  async sleep(ms: number, signal?: AbortSignal) {
    if (this.isDead) return never();
    if (signal?.aborted === true) return;
    const { random } = this.world;
    await new Promise<void>((resolve) => {
      const early = random.chance(this.#earlyTimers) ? random.next() : 0;
      const end = () => {
        signal?.removeEventListener('abort', end);
        step.isGone = true;
        resolve();
      };
      const label = ms > LONG_SLEEP_MS ? `sleep ${Math.round(ms)}` : 'sleep';
      const step = this.afterOwn(Math.max(1, ms) - early, end, { kind: 'timer', label });
      signal?.addEventListener('abort', end);
    });
  }

  async takeMs(ms: number, label = '', kind: StepKind = 'disk') {
    if (this.isDead) return never();
    await new Promise<void>((resolve) => {
      this.after(ms, resolve, { kind, label });
    });
  }

  after(delayMs: number, run: () => unknown, about?: About): PendingStep {
    return this.world.after(delayMs, run, { ...about, process: this, isDelivered: true });
  }

  afterOwn(delayMs: number, run: () => unknown, about?: About): PendingStep {
    return this.after(delayMs / this.#rate, run, about);
  }

  takes(step: PendingStep) {
    if (this.isDead) return false;
    if (this.isStopped) this.waiting.push(step);
    return !this.isStopped;
  }

  get isStopped() {
    return this.world.now < this.stoppedUntil;
  }

  stop(forMs: number) {
    const { world } = this;
    if (this.isDead) return;
    world.note(() => `${this.name} is stopped for ${forMs.toFixed(1)}`);
    world.situations?.stopped(this.name);
    this.stoppedUntil = Math.max(this.stoppedUntil, world.now + forMs);
    world.after(this.stoppedUntil - world.now, () => {
      this.#resume();
    });
  }

  continueNow() {
    this.stoppedUntil = this.world.now;
    this.#resume();
  }

  #resume() {
    const { world, waiting } = this;
    if (this.isStopped || waiting.length === 0) return;
    world.note(() => `${this.name} continues`);
    this.waiting = [];
    // Timers, sockets and disk each have a phase of the event loop: which comes first is left to chance.
    if (world.random.chance(0.5)) shuffle(waiting, () => world.random.next());
    for (const { run } of waiting) this.after(0, run);
  }

  kill() {
    if (this.isDead) return;
    this.world.note(() => `${this.name} is killed`);
    this.world.situations?.killed(this.name);
    this.end();
  }

  end() {
    if (this.isDead) return;
    this.isDead = true;
    this.waiting = [];
    this.onDeath();
  }
}

/** What a killed process waits for. One of its own each time: a shared one would remember all who wait for it. */
export async function never(): Promise<never> {
  return new Promise(() => undefined);
}

export function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}

function shuffle(items: unknown[], next: () => number) {
  for (let index = items.length - 1; index > 0; index -= 1) {
    const other = Math.floor(next() * (index + 1));
    [items[index], items[other]] = [items[other], items[index]];
  }
}
