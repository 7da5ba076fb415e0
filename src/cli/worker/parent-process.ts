import { exitNow } from '../context/stop-signal.js';
import { EXIT_CODES } from '../context/exit-code.js';

/** What `payouts worker --processes` tells its processes when it is to stop. */
export const STOP_MESSAGE = 'stop';

/** The hidden option of a process that was started by another one with `--processes`. */
export const CHILD_FLAG = '--child';

/**
 * Aborted when the process that started this one with `--processes` says so, or is gone. A message is no signal: where
 * systemd or a terminal signals the whole group as well, a child must not count that as a second signal. A parent that
 * ends before its children do, although it told them to stop, got a second signal; then they end at once too.
 */
export function stoppedByParent(): AbortSignal {
  const stop = new AbortController();
  process.on('message', (message) => {
    if (message === STOP_MESSAGE) stop.abort();
  });
  process.once('disconnect', () => {
    if (stop.signal.aborted) exitNow(EXIT_CODES.failed);
    stop.abort();
  });
  // It ended while this process was starting.
  if (!process.connected) stop.abort();
  // Else the channel would keep the process alive.
  process.channel?.unref();
  return stop.signal;
}
