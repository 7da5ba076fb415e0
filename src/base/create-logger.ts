import { writeSync } from 'node:fs';
import { pino } from 'pino';
import { failsafeLogger, type Logger } from './logger.js';
import { toPlainLog } from './plain-text.js';

/** pino replaces the values of these names, in case a secret is logged by mistake. */
const SECRET_FIELDS = ['secretKey', 'hash', 'password', 'authorization', '*.secretKey', '*.hash', '*.password'];

/**
 * A pino logger that writes JSON lines to stderr (stdout is for a command's result). It writes synchronously, because
 * the last line before a crash matters most. A line that cannot be written is lost and counted; nothing throws.
 * @param level - pino level name, e.g. `info`
 */
export function createLogger(level: string): Logger {
  const stderr = createStderrWriter();
  return failsafeLogger(
    pino(
      { level, redact: { paths: SECRET_FIELDS, censor: '[secret]' }, timestamp: pino.stdTimeFunctions.isoTime },
      {
        write: (line: string) => {
          stderr.write(toPlainLog(line));
        },
      },
    ),
  );
}

const STDERR = 2;

/** Waits for a reader that lets a pipe fill up, but not for long, because the whole process waits. */
const BUSY_TRIES = 10;
const BUSY_WAIT_MS = 5;

interface LineWriter {
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
