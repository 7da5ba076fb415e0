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

/** Whether a thread is in a system call, such as one to a disk, or the look-up of a name, that does not return. */
function hangs(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(?:FSReq|GetAddrInfo)/.test(name));
}

/** Ends the process. `process.exit` waits for a thread that hangs; then only a signal ends it, and shows in place of the code. */
export function exitNow(code: number | string | null | undefined = process.exitCode): void {
  if (!hangs()) process.exit(code);
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}

const HANGS_FOR_MS = 1_000;

/** Ends a process whose work is done, and that only waits for a thread that hangs, once its output was read. */
export function endDespiteHang(): void {
  setInterval(() => {
    if (hangs() && process.stdout.writableLength + process.stderr.writableLength === 0) exitNow();
  }, HANGS_FOR_MS).unref();
}
