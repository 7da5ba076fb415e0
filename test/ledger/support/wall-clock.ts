import { systemClock, type Clock } from '../../../src/base/clock.js';

/** A clock whose date stands still until it is told otherwise. */
export interface WallClock extends Clock {
  advance(ms: number): void;
}

export function createWallClock(): WallClock {
  let wallMs = Date.parse('2030-01-01T00:00:00Z');
  return {
    ...systemClock,
    wallNow: () => wallMs,
    advance: (ms) => {
      wallMs += ms;
    },
  };
}
