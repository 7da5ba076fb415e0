import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/base/clock.js';

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

const MAX_STEPS = 10_000;
/** A loop that never waits asks for the time so often before Node gets a turn, and no time limit of a test can end it. */
const MAX_LOOKS_A_TURN = 100_000;

const SPUN = `Something looked at the clock more than ${MAX_LOOKS_A_TURN} times and never waited`;

/** A clock that stands still until a test moves it; sleepers are woken in order. What spins on it is stopped, and fails the test. */
export class ManualClock implements Clock {
  /** The wall clock is this far ahead of the monotonic one. */
  wallOffsetMs = Date.UTC(2030, 0, 1);
  #nowMs = 5_000;
  #sleepers: Sleeper[] = [];
  #looks = 0;

  now() {
    this.#look();
    return this.#nowMs;
  }

  wallNow() {
    this.#look();
    return this.#nowMs + this.wallOffsetMs;
  }

  async sleep(ms: number, signal?: AbortSignal) {
    this.#looks += 1;
    // What caught the error of `now` waits here, so that the test gets its turn.
    if (this.#isSpun) await new Promise(() => undefined);
    if (signal?.aborted === true) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        signal?.removeEventListener('abort', end);
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      };
      const sleeper = { at: this.#nowMs + Math.max(1, ms), wake: end };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', end);
    });
  }

  async advance(ms: number) {
    const end = this.#nowMs + ms;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      await this.#turn();
      if (!this.#wakeNext(end)) {
        this.#nowMs = end;
        await this.#turn();
        return;
      }
    }
    throw new Error('Something wakes up again and again');
  }

  /** Lets time go by until the promise is settled, and no further. */
  async until<Value>(promise: Promise<Value>): Promise<Value> {
    const end = { hasCome: false };
    const note = () => {
      end.hasCome = true;
    };
    promise.then(note, note);
    for (let step = 0; step < MAX_STEPS; step += 1) {
      await this.#turn();
      if (end.hasCome) return promise;
      if (!this.#wakeNext(Number.POSITIVE_INFINITY)) throw new Error('It waits for nothing that time would bring');
    }
    throw new Error('It waits forever');
  }

  get #isSpun() {
    return this.#looks > MAX_LOOKS_A_TURN;
  }

  #look() {
    this.#looks += 1;
    if (this.#isSpun) throw new Error(SPUN);
  }

  async #turn() {
    await turn();
    if (this.#isSpun) throw new Error(SPUN);
    this.#looks = 0;
  }

  #wakeNext(end: number) {
    const next = this.#sleepers.reduce<Sleeper | undefined>(
      (first, sleeper) => (first === undefined || sleeper.at < first.at ? sleeper : first),
      undefined,
    );
    if (next === undefined || next.at > end) return false;
    this.#nowMs = Math.max(this.#nowMs, next.at);
    next.wake();
    return true;
  }
}
