import { pino } from 'pino';
import { failsafeLogger, type Logger } from './logger.js';
import { toPlainLog } from './plain-text.js';
import { createStderrWriter } from './stderr-writer.js';

/** Names under which a secret could be logged by mistake; pino replaces their values. */
const SECRET_FIELDS = ['secretKey', 'hash', 'password', 'authorization', '*.secretKey', '*.hash', '*.password'];

/**
 * A pino logger that writes JSON lines to stderr (stdout belongs to a command's result). It writes synchronously: the last
 * line before a crash is the one that matters. A line that cannot be written is lost and counted; it throws nothing.
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
