import { writeSync } from 'node:fs';

const STDERR = 2;

/** A reader that lets a pipe fill up is waited for, but not for long: what stands still meanwhile is the whole process. */
const BUSY_TRIES = 10;
const BUSY_WAIT_MS = 5;

/** Takes whole lines, each with its line break, as pino wants its destination. */
export interface LineWriter {
  /** @throws Error when the line could not be written whole: a full disk, a reader that is gone */
  write(line: string): void;
}

/**
 * Writes lines to stderr, each at once and on its own. Of pino's own destination a failed line stays in memory, with all
 * that come after it, and its error ends a process that does not listen for it.
 * @param writeBytes - stands in for the system call in tests
 */
export function createStderrWriter(
  writeBytes: (bytes: Uint8Array) => number = (bytes) => writeSync(STDERR, bytes),
): LineWriter {
  /** Part of a line was written and its end was not: the next one must not continue it. */
  let isTorn = false;
  return {
    write(line) {
      let rest = Buffer.from(isTorn ? `\n${line}` : line);
      while (rest.length > 0) {
        const written = writePatiently(writeBytes, rest);
        if (written === 0) throw new Error('stderr takes nothing');
        isTorn = true;
        rest = rest.subarray(written);
      }
      isTorn = false;
    },
  };
}

/** A pipe that does not block says EAGAIN while it is full. */
function writePatiently(writeBytes: (bytes: Uint8Array) => number, bytes: Uint8Array): number {
  for (let tries = 1; ; tries += 1) {
    try {
      return writeBytes(bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || tries === BUSY_TRIES) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_WAIT_MS);
    }
  }
}
