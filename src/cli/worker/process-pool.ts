import type { ChildProcess } from 'node:child_process';
import { type Clock, followSignals, isAborted } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { exitNow } from '../context/cli-context.js';
import { EXIT_CODES } from '../context/exit-code.js';

export interface PoolProcess extends Pick<ChildProcess, 'pid' | 'connected' | 'kill'> {
  send(message: string, onSent: () => void): boolean;
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
}

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: string;
}

/** `usage` if the first start of a process showed wrong settings. */
export type PoolEnd = 'done' | 'failed' | 'usage';

const RESTART_MIN_MS = 1_000;

/**
 * Each restart moves accounts, and each death makes them wait for a takeover. A long pause leaves the accounts of a
 * failing process to the others.
 */
const RESTART_MAX_MS = 5 * 60_000;

/**
 * A process that ran this long may restart at once, ms. Longer than the life of a process that, say, runs out of memory
 * after some minutes: each such death would otherwise count as the first.
 */
const STEADY_AFTER_MS = 10 * 60_000;

/** Restarts a process that ended, with longer pauses if it ends soon. Stops by message: {@link stoppedByParent}. */
export class ProcessPool {
  readonly #count: number;
  readonly #start: (index: number) => PoolProcess;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #running = new Set<PoolProcess>();
  readonly #wrongSettings = new AbortController();

  /** @param start - starts a process; its index begins with 0 */
  constructor(count: number, start: (index: number) => PoolProcess, clock: Clock, logger: Logger) {
    this.#count = count;
    this.#start = start;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Runs until the settings prove wrong, or the signal is aborted and every process has ended. */
  async run(stop: AbortSignal): Promise<PoolEnd> {
    const { signal: end } = followSignals(stop, this.#wrongSettings.signal);
    const indices = Array.from({ length: this.#count }, (_, index) => index);
    const wereInOrder = await Promise.all(indices.map(async (index) => this.#keep(index, end)));
    if (this.#wrongSettings.signal.aborted) return 'usage';
    return wereInOrder.every(Boolean) ? 'done' : 'failed';
  }

  signal(signal: NodeJS.Signals): void {
    for (const child of this.#running) child.kill(signal);
  }

  /** Whether the last process ended in good order. */
  async #keep(index: number, end: AbortSignal): Promise<boolean> {
    const [clock, logger] = [this.#clock, this.#logger];
    let pauseMs = RESTART_MIN_MS;
    for (let starts = 1; !isAborted(end); starts += 1) {
      const startedAt = clock.now();
      const ended = await this.#runOnce(index, end);
      if (isAborted(end)) return ended.code === EXIT_CODES.done;
      // Only at the first start: a file changed later may be corrected, and the other processes work on.
      if (ended.code === EXIT_CODES.usage && starts === 1) {
        this.#wrongSettings.abort();
        return false;
      }
      const isSteady = clock.now() - startedAt >= STEADY_AFTER_MS;
      if (isSteady) pauseMs = RESTART_MIN_MS;
      logger.error({ process: index + 1, ...ended, restartInMs: pauseMs }, 'a worker process ended; starting another');
      await clock.sleep(pauseMs, end);
      pauseMs = Math.min(2 * pauseMs, RESTART_MAX_MS);
    }
    // Stopped during a pause: no work is in progress.
    return true;
  }

  async #runOnce(index: number, end: AbortSignal): Promise<ProcessEnd> {
    const logger = this.#logger;
    let child: PoolProcess;
    try {
      child = this.#start(index);
    } catch (error) {
      // Node throws some causes, such as ENOMEM, and emits others. The other processes work on.
      return { code: null, signal: null, error: (error as Error).message };
    }
    this.#running.add(child);
    logger.info({ process: index + 1, pid: child.pid }, 'started a worker process');
    const onEnd = (): void => {
      // A process that is just ending accepts no message.
      if (child.connected) child.send(STOP_MESSAGE, () => undefined);
    };
    end.addEventListener('abort', onEnd);
    const ended = await new Promise<ProcessEnd>((resolve) => {
      child.once('error', (error: Error) => {
        resolve({ code: null, signal: null, error: error.message });
      });
      child.once('exit', (code, signal) => {
        resolve({ code, signal });
      });
    });
    end.removeEventListener('abort', onEnd);
    this.#running.delete(child);
    return ended;
  }
}

const STOP_MESSAGE = 'stop';

/** Hidden option of a process started with `--processes`. */
export const CHILD_FLAG = '--child';

/**
 * The parent's message or end aborts it. A signal does not: systemd or a terminal may signal the whole group, and a
 * child must not count that twice. A parent that ends before its stopped children got a second signal: they end at once
 * too.
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
  // The parent ended while this process started.
  if (!process.connected) stop.abort();
  // Otherwise the channel keeps the process alive.
  process.channel?.unref();
  return stop.signal;
}
