/**
 * Calls of what only watches: loggers, observers, telemetry. An application brings these, and disks fill up under them.
 * None of them may cost the response to a withdrawal, so what they throw ends here, and is counted.
 */

export type Watcher = 'logger' | 'observer' | 'telemetry';

const failures: Record<Watcher, number> = { logger: 0, observer: 0, telemetry: 0 };
const lastFailedAt = new Map<Watcher, number>();

/** How many calls have failed since the process started. */
export function watcherFailures(watcher: Watcher): number {
  return failures[watcher];
}

/** For how long no call has failed, in ms; undefined when none ever did. */
export function sinceWatcherFailureMs(watcher: Watcher): number | undefined {
  const at = lastFailedAt.get(watcher);
  return at === undefined ? undefined : performance.now() - at;
}

/**
 * Makes one call of a watcher; never throws. A promise that it returns is not waited for, and may reject.
 * @param fallback - takes the place of what the call would have returned
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

/** The named methods of a watcher, none of which throws. For methods that return nothing. */
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
