import { setTimeout as delay } from 'node:timers/promises';

const POLL_EVERY_MS = 50;

/** @param what - is waited for, for the error; a function where it is only known then */
export async function until(what: string | (() => string), holds: () => Promise<boolean> | boolean, withinMs = 60_000) {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) {
      throw new Error(`Not within ${withinMs} ms: ${typeof what === 'string' ? what : what()}`);
    }
    await delay(POLL_EVERY_MS);
  }
}
