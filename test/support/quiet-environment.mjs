import files from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { TestEnvironment } from 'jest-environment-node';

/** A socket takes a moment to close. Longer on a busy machine than Jest itself would wait. */
const CLOSES_WITHIN_MS = 30_000;

/** Fails a test file that leaves a timer, a socket, a file or a child process open. Jest would not name the file. */
export default class QuietEnvironment extends TestEnvironment {
  #before = [];
  #files = [];
  #restore = () => undefined;

  async setup() {
    await super.setup();
    // Under a user's umask of 002 the files that a test writes would be refused: others could write them.
    process.umask(0o022);
    // Node opens them at their first use, which may be in a test.
    void [process.stdin, process.stdout, process.stderr];
    const { open } = files;
    files.open = async (...args) => {
      const file = await open(...args);
      this.#files.push({ path: args[0], file });
      return file;
    };
    this.#restore = () => void (files.open = open);
    this.#before = process.getActiveResourcesInfo();
  }

  async teardown() {
    const startedAt = performance.now();
    let left = this.#leftOpen();
    while (left.length > 0 && performance.now() - startedAt < CLOSES_WITHIN_MS) {
      await sleep(20, undefined, { ref: false });
      left = this.#leftOpen();
    }
    this.#restore();
    await super.teardown();
    if (left.length > 0) throw new Error(`The tests of this file left open: ${left.join(', ')}.`);
  }

  #leftOpen() {
    const before = [...this.#before];
    const openFiles = this.#files.filter(({ file }) => file.fd !== -1).map(({ path }) => `the file ${path}`);
    const resources = process.getActiveResourcesInfo().filter((resource) => {
      const place = before.indexOf(resource);
      if (place !== -1) before.splice(place, 1);
      return place === -1;
    });
    return [...openFiles, ...resources];
  }
}
