import { callWatcher, failsafeMethods } from './failsafe.js';

/** What the code logs with: four levels and children with bound fields, so that pino or any look-alike fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** A logger that says nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

const FAILSAFE = new WeakSet<Logger>();

/**
 * The same logger, but it and its children never throw: every function that is given a logger from outside takes it like
 * this. Of a child that cannot be made, the parent takes the place.
 */
export function failsafeLogger(logger: Logger): Logger {
  if (FAILSAFE.has(logger)) return logger;
  const failsafe: Logger = {
    ...failsafeMethods('logger', logger, ['debug', 'info', 'warn', 'error']),
    child: (fields) => failsafeLogger(callWatcher('logger', () => logger.child(fields), logger)),
  };
  FAILSAFE.add(failsafe);
  return failsafe;
}
