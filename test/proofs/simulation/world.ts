import { EventHeap } from './event-heap.js';
import { Random } from '../../doubles/random.js';
import { Situations } from './situations.js';

/** Thrown for a run that breaks a promise. */
export class BrokenPromise extends Error {}

/** More steps than any sound run takes: something runs in a loop. */
const MAX_STEPS = 400_000;

/**
 * Virtual time. Events run one after another in the order of their times; after each of them every promise that it
 * settled is followed to its end before time moves on. No real timer is used, so minutes pass in a millisecond.
 */
export class World {
  readonly random: Random;
  /** True time, ms: the gateway's clock. Processes have clocks of their own. */
  now = 0;
  /** Faults are switched off at the end of a run, to see that everything drains. */
  faultsOn = true;
  readonly trace: string[] | undefined;
  readonly situations = new Situations({ now: () => this.now });
  /** Until then nothing goes wrong, as an assumption of the sending rules demands after some faults. */
  calmUntil = 0;
  readonly #events = new EventHeap();
  #failure: Error | undefined;
  #steps = 0;

  /** How often a write of the journal hangs, and the chance that decides it: of their own, so that the other runs stay as they are. */
  readonly hangs: { readonly random: Random; readonly rate: number };

  constructor(seed: number, tracing: boolean) {
    this.random = new Random(seed);
    const random = new Random(seed ^ 0x6861_6e67);
    this.hangs = { random, rate: random.chance(0.25) ? random.pick([0.05, 0.2, 0.5]) : 0 };
    this.trace = tracing ? [] : undefined;
  }

  get steps(): number {
    return this.#steps;
  }

  after(delayMs: number, run: () => void): void {
    this.#events.push(this.now + Math.max(0, delayMs), run);
  }

  get mayFail(): boolean {
    return this.faultsOn && this.now >= this.calmUntil;
  }

  /** Draws for a fault; never true once faults are switched off. */
  fault(probability: number): boolean {
    return this.mayFail && this.random.chance(probability);
  }

  note(line: () => string): void {
    this.trace?.push(`${this.now.toFixed(3).padStart(12)} ${line()}`);
  }

  /** The run has broken a promise; the first one counts. */
  fail(reason: string): void {
    this.note(() => `BROKEN: ${reason}`);
    this.#failure ??= new BrokenPromise(reason);
  }

  /**
   * Runs until `isDone` or the time is over.
   * @returns whether it was done in time
   * @throws BrokenPromise as soon as one is broken
   */
  async run(isDone: () => boolean, untilMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const step = (): void => {
        try {
          if (this.#failure !== undefined) throw this.#failure;
          if (isDone()) {
            resolve(true);
            return;
          }
          const event = this.#events.pop();
          if (event === undefined || event.time > untilMs) {
            if (event !== undefined) this.#events.push(event.time, event.run);
            this.now = untilMs;
            resolve(false);
            return;
          }
          this.#steps += 1;
          if (this.#steps > MAX_STEPS) throw new BrokenPromise(`no end after ${MAX_STEPS} steps`);
          this.now = event.time;
          event.run();
          queueMicrotask(next);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      // A tick that is asked for in a microtask runs after all microtasks, and costs no turn of the event loop.
      const next = (): void => {
        process.nextTick(step);
      };
      queueMicrotask(next);
    });
  }
}
