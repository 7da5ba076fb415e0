import type { Clock } from '../clock.js';

/** How far a wall clock is ahead of this process's monotonic clock, in ms: not below `low` and not above `high`. */
export interface ClockReading {
  readonly low: number;
  readonly high: number;
}

/** A smaller step lengthens a wait of BullMQ by no more than this, in ms, and is not worth a repair. */
const TOLERATED_MS = 200;

/** Reads the wall clock of this machine. */
export function readLocalClock(clock: Pick<Clock, 'now' | 'wallNow'>): ClockReading {
  const offset = clock.wallNow() - clock.now();
  return { low: offset, high: offset };
}

/**
 * Notices that a wall clock was put back. A clock that runs a little slow is noticed in the end as well, which costs a
 * repair that finds nothing.
 */
export class ClockStepDetector {
  #known: ClockReading | undefined;

  /** @returns whether the clock was put back since an earlier reading */
  note(reading: ClockReading): boolean {
    const known = this.#known;
    if (known !== undefined && reading.high < known.low - TOLERATED_MS) {
      this.#known = reading;
      return true;
    }
    const mayBeSame = known !== undefined && reading.low <= known.high;
    // A reading that took long says little: the bounds that were known before still hold.
    this.#known = mayBeSame
      ? { low: Math.max(known.low, reading.low), high: Math.min(known.high, reading.high) }
      : reading;
    return false;
  }
}
