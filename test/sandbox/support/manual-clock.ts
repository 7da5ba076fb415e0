import { systemClock, type Clock } from '../../../src/base/clock.js';

/** A clock that moves only when a test advances it, so a limit can be met exactly. */
export interface ManualClock extends Clock {
  advance(ms: number): void;
}

export function createManualClock(): ManualClock {
  let nowMs = 5_000;
  return {
    ...systemClock,
    now: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}
