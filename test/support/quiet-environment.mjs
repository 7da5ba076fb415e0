import { setTimeout as sleep } from 'node:timers/promises';
import { TestEnvironment } from 'jest-environment-node';

/** A socket takes a moment to close. Longer on a busy machine than Jest itself would wait. */
const CLOSES_WITHIN_MS = 10_000;

/**
 * Fails a test file that leaves a timer, a socket or a child process open, and names what it left. Jest would kill the
 * worker process at the very end, and say so without the name of the file.
 */
export default class QuietEnvironment extends TestEnvironment {
  #before = [];

  async setup() {
    await super.setup();
    // Node opens them at their first use, which may be in a test.
    void [process.stdin, process.stdout, process.stderr];
    this.#before = process.getActiveResourcesInfo();
  }

  async teardown() {
    const startedAt = performance.now();
    let left = this.#leftOpen();
    while (left.length > 0 && performance.now() - startedAt < CLOSES_WITHIN_MS) {
      await sleep(20, undefined, { ref: false });
      left = this.#leftOpen();
    }
    await super.teardown();
    if (left.length > 0) throw new Error(`The tests of this file left open: ${left.join(', ')}.`);
  }

  #leftOpen() {
    const before = [...this.#before];
    return process.getActiveResourcesInfo().filter((resource) => {
      const place = before.indexOf(resource);
      if (place !== -1) before.splice(place, 1);
      return place === -1;
    });
  }
}
