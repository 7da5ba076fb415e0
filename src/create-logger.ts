import { pino } from 'pino';
import { failsafeLogger, type Logger } from './logger.js';
import { toPlainLog } from './plain-text.js';
import { createStderrWriter } from './stderr-writer.js';

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
