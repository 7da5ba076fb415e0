import { systemClock } from '../../../src/base/clock.js';

/** A clock whose date stands still until it is told otherwise. */
export function createWallClock() {
  let wallMs = Date.parse('2030-01-01T00:00:00Z');
  return { ...systemClock, wallNow: () => wallMs, advance: (ms: number) => void (wallMs += ms) };
}
