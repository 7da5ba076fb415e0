import type { Scheduler } from 'fast-check';
import type { Clock } from '../../../src/base/clock.js';
import { waitUnlessAborted } from '../wait-unless-aborted.js';

/** Thrown for an ordering that breaks a promise; its message ends with all that happened, in order. */
export class BrokenOrdering extends Error {}

/** The length in ms of the steps into which a sleep is cut, so that a long sleep mostly ends later than a short one. */
const STEP_MS = 500;

const WALL_START = Date.UTC(2030, 0, 1);

/**
 * What happens next is up to the scheduler: every command on its way to the ledger, every reply, response, write and timer is
 * one of its tasks. Time passes only when a timer is chosen.
 */
export class RaceWorld {
  readonly #scheduler: Scheduler;
  readonly #trace: string[] = [];
  #nowMs = 0;
  #broken: string | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get now(): number {
    return this.#nowMs;
  }

  note(line: string): void {
    this.#trace.push(`${String(this.#nowMs).padStart(6)} ${line}`);
  }

  /** The first promise that is broken counts. */
  breaks(what: string): void {
    this.note(`BROKEN: ${what}`);
    this.#broken ??= what;
  }

  /** @throws BrokenOrdering */
  expectWhole(): void {
    if (this.#broken !== undefined) throw new BrokenOrdering(`${this.#broken}\n${this.#trace.join('\n')}\n`);
  }

  /** Waits for its turn. */
  async turn(label: string): Promise<void> {
    await this.#scheduler.schedule(Promise.resolve(), label);
  }

  /**
   * Does something when its turn has come; until it is done, nobody else has a turn. The scheduler asks a task for its
   * result only then, which is when this one begins its work.
   */
  async atTurn<Result>(label: string, run: () => Promise<Result>): Promise<Result> {
    const begunWhenAsked = {
      then: async (...handlers: Parameters<Promise<Result>['then']>): Promise<unknown> => run().then(...handlers),
    };
    return this.#scheduler.schedule(begunWhenAsked as unknown as Promise<Result>, label);
  }

  /** The clock of a process. All agree on the time. */
  clockOf(name: string): Clock {
    return {
      now: () => this.#nowMs,
      wallNow: () => WALL_START + this.#nowMs,
      sleep: async (ms, signal) => this.#sleep(name, ms, signal),
    };
  }

  async #sleep(name: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const until = this.#nowMs + Math.max(1, ms);
    await waitUnlessAborted(signal, (end) => {
      const wake = async (): Promise<void> => {
        while (this.#nowMs < until) {
          await this.turn(`${name} wakes`);
          if (signal?.aborted === true) return;
          this.#nowMs = Math.max(this.#nowMs, Math.min(until, this.#nowMs + STEP_MS));
        }
        end();
      };
      void wake();
    });
  }
}
