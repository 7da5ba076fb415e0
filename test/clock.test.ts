import { expect, it } from '@jest/globals';
import { LONGEST_TIMER_MS, systemClock } from '../src/clock.js';

it.each([LONGEST_TIMER_MS + 1, 1e10, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY])(
  'a sleep of %d ms, longer than a timer can wait, does not end early, but when it is told to',
  async (ms) => {
    const stop = new AbortController();
    let isOver = false;
    const sleep = systemClock.sleep(ms, stop.signal).then(() => {
      isOver = true;
    });
    await systemClock.sleep(100);
    expect(isOver).toBe(false);
    stop.abort();
    await sleep;
  },
);

it('a sleep ends at its time, and one of no time at once', async () => {
  const startedAt = systemClock.now();
  await systemClock.sleep(0);
  await systemClock.sleep(-5);
  await systemClock.sleep(30);
  // Timers may fire a little early.
  expect(systemClock.now() - startedAt).toBeGreaterThanOrEqual(28);
});
