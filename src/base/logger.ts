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

/** For an application without a logger: errors alone, as warnings of the process. */
export const errorsAsWarnings: Logger = {
  ...silentLogger,
  error: (fields, message) => {
    process.emitWarning(message, { type: 'PayoutQueueWarning', detail: JSON.stringify(fields) });
  },
  child: () => errorsAsWarnings,
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

/**
 * Calls an application's loggers, observers and telemetry. They may fail, for example on a full disk. None may cost the
 * response to a withdrawal, so their errors end here and are counted.
 */

type Watcher = 'logger' | 'observer' | 'telemetry';

const failures: Record<Watcher, number> = { logger: 0, observer: 0, telemetry: 0 };
const lastFailedAt = new Map<Watcher, number>();

/** Failed calls since the process started. */
export function watcherFailures(watcher: Watcher): number {
  return failures[watcher];
}

/** Time since the last failed call, in ms; undefined if none ever failed. */
export function sinceWatcherFailureMs(watcher: Watcher): number | undefined {
  const at = lastFailedAt.get(watcher);
  return at === undefined ? undefined : performance.now() - at;
}

/**
 * Calls a watcher; never throws. A returned promise is not awaited, and may reject.
 * @param fallback - the result if the call fails
 */
export function callWatcher<Result>(watcher: Watcher, call: () => Result, fallback: Result): Result {
  const count = (): void => {
    failures[watcher] += 1;
    lastFailedAt.set(watcher, performance.now());
  };
  try {
    const result = call();
    if (result instanceof Promise) result.catch(count);
    return result;
  } catch {
    count();
    return fallback;
  }
}

export function failsafeMethods<Target extends object, Name extends keyof Target & string>(
  watcher: Watcher,
  target: Target,
  names: readonly Name[],
): Pick<Target, Name> {
  const methods = names.map((name) => {
    const method = (...args: unknown[]): void => {
      callWatcher(watcher, () => (target[name] as (...given: unknown[]) => unknown).apply(target, args), undefined);
    };
    return [name, method];
  });
  return Object.fromEntries(methods) as Pick<Target, Name>;
}
