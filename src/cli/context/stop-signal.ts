/** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (): void => {
    // Without a listener, a second signal ends the process.
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
    controller.abort();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  return controller.signal;
}

const noReload = (): void => undefined;

/**
 * Keeps SIGHUP, which a closed terminal sends too, from ending a process that serves others.
 * @param reload - called at each SIGHUP. @defaultValue what the command reads again, it reads again by itself
 */
export function outliveHangup(reload: () => void = noReload): void {
  process.removeListener('SIGHUP', noReload);
  process.on('SIGHUP', reload);
}
