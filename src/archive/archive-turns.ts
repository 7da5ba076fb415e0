import { within } from '../clock.js';

const WAIT_MS = 3_000;

/**
 * Has one account at a time write to the archive. A folder on a network may hang, and each write that hangs keeps one of the
 * process's few threads for files: with an account each they would all be taken, and no send could be written to its journal.
 */
export class ArchiveTurns {
  #writing: Promise<unknown> | undefined;
  readonly #waitMs: number;

  /** @param waitMs - for how long a write waits for those before it */
  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  /** Writes once no other write is under way. @throws Error when those before take too long, or what the write throws */
  async take(write: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    while (this.#writing !== undefined) {
      const leftMs = startedAt + this.#waitMs - performance.now();
      const ended = this.#writing.then(() => true);
      if (leftMs <= 0 || (await within(leftMs, ended)) === undefined) {
        throw new Error('an earlier write, of this account or another, has not ended');
      }
    }
    const written = write();
    this.#writing = written.catch(() => undefined);
    try {
      await written;
    } finally {
      this.#writing = undefined;
    }
  }
}

/** The turns of all accounts of this process. */
export const processTurns = new ArchiveTurns();
