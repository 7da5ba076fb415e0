import { writeSync } from 'node:fs';

const STDERR = 2;

/** Waits for a reader that lets a pipe fill up, but not for long, because the whole process waits. */
const BUSY_TRIES = 10;
const BUSY_WAIT_MS = 5;

export interface LineWriter {
  /** @throws Error if the line was not written whole: a full disk, a reader that is gone */
  write(line: string): void;
}

/**
 * Writes each line to stderr at once. pino's own destination keeps a failed line and all later ones in memory. Its
 * error ends a process without a listener.
 * @param writeBytes - replaces the system call in tests
 */
export function createStderrWriter(
  writeBytes: (bytes: Uint8Array) => number = (bytes) => writeSync(STDERR, bytes),
): LineWriter {
  /** Part of a line was written without its end, so the next line must not continue it. */
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

/** A full non-blocking pipe fails with EAGAIN. */
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
