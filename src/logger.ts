import { pino } from 'pino';

/** What the code logs with: four levels and children with bound fields, so that pino or any look-alike fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Names under which a secret could be logged by mistake; pino replaces their values. */
const SECRET_FIELDS = ['secretKey', 'hash', 'password', 'authorization', '*.secretKey', '*.hash', '*.password'];

/**
 * A pino logger that writes JSON lines to stderr (stdout belongs to a command's result). It writes synchronously: the last
 * line before a crash is the one that matters.
 * @param level - pino level name, e.g. `info`
 */
export function createLogger(level: string): Logger {
  return pino(
    { level, redact: { paths: SECRET_FIELDS, censor: '[secret]' }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: true }),
  );
}

/** A logger that says nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
