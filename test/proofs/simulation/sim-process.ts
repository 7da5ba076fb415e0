import type { Clock } from '../../../src/base/clock.js';
import { waitUnlessAborted } from '../wait-unless-aborted.js';
import type { World } from './world.js';

export interface SimProcessOptions {
  readonly world: World;
  readonly name: string;
  /** How fast its clock runs, 1 being true. */
  readonly rate: number;
  /** Timers that fire up to a millisecond early happen with this probability. */
  readonly earlyTimers: number;
  readonly wallOffsetMs: number;
}

/** The time of day at which a run begins, ms. */
export const WALL_START = Date.UTC(2030, 0, 1);

/**
 * A process of the simulation: it has a clock of its own and can be stopped (SIGSTOP: nothing of it runs, its clock
 * continues) or killed (nothing of it ever runs again). Whatever it is told from outside comes through `deliver`.
 */
export class SimProcess implements Clock {
  readonly world: World;
  readonly name: string;
  dead = false;
  wallOffsetMs: number;
  readonly #rate: number;
  readonly #earlyTimers: number;
  readonly #offsetMs: number;
  #resumesAt = 0;
  #waiting: (() => void)[] = [];
  readonly #onDeath: (() => void)[] = [];

  constructor({ world, name, rate, earlyTimers, wallOffsetMs }: SimProcessOptions) {
    this.world = world;
    this.name = name;
    this.#rate = rate;
    this.#earlyTimers = earlyTimers;
    this.wallOffsetMs = wallOffsetMs;
    this.#offsetMs = world.random.between(0, 1e6);
  }

  now(): number {
    return this.#offsetMs + this.world.now * this.#rate;
  }

  wallNow(): number {
    return Math.round(WALL_START + this.world.now + this.wallOffsetMs);
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.dead) return never();
    await waitUnlessAborted(signal, (end) => {
      const { random } = this.world;
      const early = random.chance(this.#earlyTimers) ? random.next() : 0;
      this.afterOwn(Math.max(1, ms) - early, end);
    });
  }

  /** Runs it now, or as soon as the process runs again, or never. */
  deliver(run: () => void): void {
    if (this.dead) return;
    if (this.paused) this.#waiting.push(run);
    else run();
  }

  /** @param delayMs - true time */
  after(delayMs: number, run: () => void): void {
    this.world.after(delayMs, () => {
      this.deliver(run);
    });
  }

  /** @param delayMs - on its own clock */
  afterOwn(delayMs: number, run: () => void): void {
    this.after(delayMs / this.#rate, run);
  }

  /** Something that takes time, such as a write to disk. */
  async takeMs(delayMs: number): Promise<void> {
    if (this.dead) return never();
    await new Promise<void>((resolve) => {
      this.after(delayMs, resolve);
    });
  }

  get paused(): boolean {
    return this.world.now < this.#resumesAt;
  }

  pause(forMs: number): void {
    if (this.dead) return;
    this.world.note(() => `${this.name} is stopped for ${forMs.toFixed(1)}`);
    this.world.situations.stopped(this.name);
    this.#resumesAt = Math.max(this.#resumesAt, this.world.now + forMs);
    this.world.after(this.#resumesAt - this.world.now, () => {
      this.#resume();
    });
  }

  /** Continues it before its time. */
  continueNow(): void {
    this.#resumesAt = this.world.now;
    this.#resume();
  }

  #resume(): void {
    if (this.paused || this.#waiting.length === 0) return;
    this.world.note(() => `${this.name} continues`);
    const waiting = this.#waiting;
    this.#waiting = [];
    // Timers, sockets and disk each have a phase of the event loop: which comes first is left to chance.
    if (this.world.random.chance(0.5)) shuffle(waiting, () => this.world.random.next());
    for (const run of waiting) this.after(0, run);
  }

  kill(): void {
    if (this.dead) return;
    this.world.note(() => `${this.name} is killed`);
    this.world.situations.killed(this.name);
    this.end();
  }

  /** It ended by itself. */
  end(): void {
    if (this.dead) return;
    this.dead = true;
    this.#waiting = [];
    for (const listener of this.#onDeath) listener();
  }

  onDeath(listener: () => void): void {
    this.#onDeath.push(listener);
  }
}

/** What a killed process waits for. One of its own each time: a shared one would remember all who wait for it. */
async function never(): Promise<never> {
  return new Promise(() => undefined);
}

function shuffle(items: unknown[], next: () => number): void {
  for (let index = items.length - 1; index > 0; index -= 1) {
    const other = Math.floor(next() * (index + 1));
    [items[index], items[other]] = [items[other], items[index]];
  }
}
