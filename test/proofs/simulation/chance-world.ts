import { Random } from '../../doubles/random.js';
import { World, type Progress } from '../../world/world.js';
import { Situations } from './situations.js';

const MAX_STEPS = 400_000;

/** Steps in the order of their times, which are drawn by chance, as faults are: one seed decides everything. */
export class ChanceWorld extends World {
  override readonly random: Random;
  override readonly isByChance = true;
  faultsOn = true;
  override readonly situations = new Situations(() => this.now);
  /** Until then nothing goes wrong, as an assumption of the sending rules demands after some faults. */
  calmUntil = 0;
  /** A stream of its own, so that runs in which nothing hangs stay as they are. */
  override readonly hangs: { readonly random: Random; readonly rate: number };
  #isDone: () => boolean = () => false;
  #untilMs = 0;

  constructor(seed: number, isTracing: boolean) {
    super(isTracing);
    this.random = new Random(seed);
    const random = new Random(seed ^ 0x6861_6e67);
    this.hangs = { random, rate: random.chance(0.25) ? random.pick([0.05, 0.2, 0.5]) : 0 };
  }

  get steps(): number {
    return this.count;
  }

  override get mayFail(): boolean {
    return this.faultsOn && this.now >= this.calmUntil;
  }

  override note(line: () => string): void {
    this.trace?.push(`${this.now.toFixed(3).padStart(12)} ${line()}`);
  }

  /** @returns whether it was done in time. @throws Error as soon as a promise is broken */
  async runUntil(untilMs: number, isDone: () => boolean = () => false): Promise<boolean> {
    this.#isDone = isDone;
    this.#untilMs = untilMs;
    await this.run();
    if (this.failure !== undefined) throw new Error(this.failure);
    return isDone();
  }

  protected override next(): Progress {
    if (this.#isDone()) return 'over';
    const step = this.pending.at(-1);
    if (step === undefined || step.at > this.#untilMs) {
      this.now = this.#untilMs;
      return 'over';
    }
    this.pending.pop();
    this.count += 1;
    if (this.count > MAX_STEPS) throw new Error(`no end after ${MAX_STEPS} steps`);
    this.now = step.at;
    if (step.isDelivered !== true || step.process?.takes(step) === true) step.run();
    return 'ran';
  }
}
