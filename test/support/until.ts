import { setTimeout as delay } from 'node:timers/promises';

const POLL_EVERY_MS = 50;

/**
 * Polls a condition until it holds.
 * @param what - what is waited for, for the error
 * @throws Error when it does not hold within the time
 */
export async function until(what: string, holds: () => Promise<boolean> | boolean, withinMs = 60_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await delay(POLL_EVERY_MS);
  }
}
