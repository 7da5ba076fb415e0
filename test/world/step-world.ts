/**
 * - `command`: Redis carries out a command; `reply`: its reply reaches the process.
 * - `timer`, `disk`: a process wakes up; its journal has been read, written or synced.
 * - `write`: the last check and the first byte of a withdrawal; `arrival`: it reaches the gateway; `response`: so does
 *   the response.
 * - `timeout`: a process stops waiting; `mark`: nothing, a moment at which something may be let go or begin.
 */
export type StepKind = 'command' | 'reply' | 'timer' | 'disk' | 'write' | 'arrival' | 'response' | 'timeout' | 'mark';

/** They say when something happens; what happens then is a step of its own. */
export const TIMES: ReadonlySet<StepKind> = new Set(['timer', 'timeout', 'mark']);

/** A process of the run, as the world stops and kills it. */
export interface WorldProcess {
  readonly name: string;
  isDead: boolean;
  isStopped: boolean;
  /** What reached it while it was stopped. */
  waiting: PendingStep[];
  /** Called right after it was killed. */
  onDeath?: () => void;
}

export interface StepOptions {
  readonly kind: StepKind;
  readonly label: string;
  /** To which it happens, or that sent it. */
  readonly process?: WorldProcess;
  /** It reaches the process itself: waits while that is stopped, and never comes once it is dead. */
  readonly isDelivered?: boolean;
  /** A message comes at this time at the latest, ms. */
  readonly deadline?: number;
  /** Called when it is held or lost, or the connection that it was on has ended. */
  readonly onTrouble?: () => void;
  /** A command of a real Redis takes time. */
  readonly run: () => unknown;
}

export interface PendingStep extends StepOptions {
  at: number;
  /** Steps at the same time run in this order. */
  order: number;
  isGone: boolean;
}

export type Progress = 'ran' | 'again' | 'over';

/** Virtual time in which every event is a step. What comes next is up to a scheduler: a class that extends it. */
export abstract class StepWorld {
  now = 0;
  failure: string | undefined;
  readonly trace: string[] | undefined;
  /** The next one last. */
  protected readonly pending: PendingStep[] = [];
  protected count = 0;
  #order = 0;

  constructor(tracing = false) {
    this.trace = tracing ? [] : undefined;
  }

  note(line: () => string): void {
    this.trace?.push(`${String(this.count).padStart(4)} ${this.now.toFixed(2).padStart(10)} ${line()}`);
  }

  /** The run has broken a promise; the first one counts. */
  fail(reason: string): void {
    this.note(() => `BROKEN: ${reason}`);
    this.failure ??= reason;
  }

  /** @param delayMs - true time */
  after(delayMs: number, options: StepOptions): PendingStep {
    const step = { ...options, at: this.now + Math.max(0, delayMs), order: (this.#order += 1), isGone: false };
    this.add(step);
    return step;
  }

  /** Runs until nothing is left to do, or the time is over. @throws Error when there is no end */
  async run(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      // A tick that is asked for in a microtask runs after all microtasks: the step is followed to its end.
      const goOn = (): void => {
        queueMicrotask(() => {
          process.nextTick(next);
        });
      };
      const next = (): void => {
        try {
          let progress: Progress = 'again';
          while (progress === 'again') progress = this.failure === undefined ? this.next() : 'over';
          if (progress === 'over') resolve();
          else if (this.#running === undefined) goOn();
          else void this.#running.then(goOn, reject);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      queueMicrotask(next);
    });
  }

  /** Takes one step. */
  protected abstract next(): Progress;

  #running: Promise<unknown> | undefined;

  protected carryOut(step: PendingStep): void {
    this.note(() => describeStep(step));
    const running = step.run();
    this.#running = running instanceof Promise ? running : undefined;
  }

  protected add(step: PendingStep): void {
    const { at, order } = step;
    const index = this.pending.findLastIndex((other) => other.at > at || (other.at === at && other.order > order));
    this.pending.splice(index + 1, 0, step);
  }
}

export function describeStep({ process, kind, label }: StepOptions): string {
  return `${process?.name ?? '-'} ${kind} ${label}`;
}
