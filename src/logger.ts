import { callWatcher, failsafeMethods } from './failsafe.js';

/** The logger interface: four levels, and children with bound fields. pino and look-alikes fit. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Logs nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

const FAILSAFE = new WeakSet<Logger>();

/**
 * The same logger, but it and its children never throw. Every function wraps a logger from outside with it. If a child
 * cannot be made, its parent is used.
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
