import type { StepKind } from './schedule.js';

/** A process of the run, as the world stops and kills it. */
export interface WorldProcess {
  readonly name: string;
  isDead: boolean;
  isStopped: boolean;
  /** What reached it while it was stopped. */
  waiting: PendingStep[];
  /** Told right after it was killed. */
  onDeath?: () => void;
}

export interface StepOptions {
  readonly kind: StepKind;
  readonly label: string;
  /** To which it happens, or that sent it. */
  readonly process?: WorldProcess;
  /** It reaches the process itself: waits while that is stopped, and never comes once it is dead. */
  readonly isDelivered?: boolean;
  /** A held message comes at this time at the latest, ms. */
  readonly deadline?: number;
  /** Told when it is held or lost, or the connection that it was on has ended. */
  readonly onTrouble?: () => void;
  readonly run: () => void;
}

export interface PendingStep extends StepOptions {
  at: number;
  /** Steps at the same time run in this order. */
  order: number;
  isGone: boolean;
}

/** What is to happen, in the order in which it happens. */
export class StepQueue {
  /** The next one last. */
  readonly #steps: PendingStep[] = [];

  /** In no particular order. */
  get steps(): readonly PendingStep[] {
    return this.#steps;
  }

  /** When the next one happens, ms. */
  get nextAt(): number | undefined {
    return this.#steps.at(-1)?.at;
  }

  take(): PendingStep | undefined {
    return this.#steps.pop();
  }

  /** It was taken, and is the next one still. */
  putBack(step: PendingStep): void {
    this.#steps.push(step);
  }

  add(step: PendingStep): void {
    const { at, order } = step;
    const index = this.#steps.findLastIndex((other) => other.at > at || (other.at === at && other.order > order));
    this.#steps.splice(index + 1, 0, step);
  }
}

export function describeStep({ process, kind, label }: StepOptions): string {
  return `${process?.name ?? '-'} ${kind} ${label}`;
}
