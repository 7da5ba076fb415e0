import type { Clock } from '../../src/base/clock.js';
import { waitUnlessAborted } from '../proofs/wait-unless-aborted.js';
import type { PendingStep, StepKind, StepWorld, WorldProcess } from './step-world.js';

export interface StepProcessOptions {
  readonly world: StepWorld;
  readonly name: string;
  /** How fast its clock runs, 1 being true. */
  readonly rate?: number | undefined;
  readonly wallOffsetMs?: number | undefined;
}

export const WALL_START = Date.UTC(2030, 0, 1);
/** Clocks of different machines count from different moments. */
const CLOCK_START_MS = 1_000;
/** Shorter waits are retries and turns: they have no length of their own in a label. */
const LONG_SLEEP_MS = 10;

/** A process of a run: it has clocks of its own; everything that reaches it is a step of the world. */
export class StepProcess implements Clock, WorldProcess {
  /** What the simulation's worker uses of its world: no fault comes by chance here. */
  readonly world: { note(line: () => string): void; fault(probability: number): boolean };
  readonly name: string;
  isDead = false;
  isStopped = false;
  waiting: PendingStep[] = [];
  onDeath: () => void = () => undefined;
  readonly #world: StepWorld;
  readonly #rate: number;
  readonly #wallOffsetMs: number;

  constructor({ world, name, rate = 1, wallOffsetMs = 0 }: StepProcessOptions) {
    this.#world = world;
    this.name = name;
    this.#rate = rate;
    this.#wallOffsetMs = wallOffsetMs;
    this.world = {
      note: (line) => {
        world.note(line);
      },
      fault: () => false,
    };
  }

  now(): number {
    return CLOCK_START_MS + this.#world.now * this.#rate;
  }

  wallNow(): number {
    return Math.round(WALL_START + this.#world.now + this.#wallOffsetMs);
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.isDead) return never();
    let step: PendingStep | undefined;
    await waitUnlessAborted(signal, (end) => {
      const label = ms > LONG_SLEEP_MS ? `sleep ${Math.round(ms)}` : 'sleep';
      step = this.#deliver(Math.max(1, ms) / this.#rate, 'timer', label, end);
    });
    if (step !== undefined) step.isGone = true;
  }

  /** Something of its own that takes time, such as the disk. */
  async takeMs(ms: number, label: string): Promise<void> {
    if (this.isDead) return never();
    await new Promise<void>((resolve) => {
      this.#deliver(ms, 'disk', label, resolve);
    });
  }

  /** @param ms - on its own clock, from now */
  afterOwn(ms: number, label: string, run: () => void): void {
    this.#deliver(ms / this.#rate, 'timeout', label, run);
  }

  #deliver(delayMs: number, kind: StepKind, label: string, run: () => void): PendingStep {
    return this.#world.after(delayMs, { kind, label, process: this, isDelivered: true, run });
  }
}

/** What a killed process waits for. */
export async function never(): Promise<never> {
  return new Promise(() => undefined);
}
