import type { ChildProcess } from 'node:child_process';
import { type Clock, followSignals, isAborted } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import { exitNow } from '../context/cli-context.js';
import { EXIT_CODES } from '../context/exit-code.js';

/** A worker process, as far as it is watched over. */
export interface PoolProcess extends Pick<ChildProcess, 'pid' | 'connected' | 'kill'> {
  send(message: string, onSent: () => void): boolean;
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
}

interface ProcessPoolOptions {
  readonly count: number;
  /** @param index - from 0 */
  readonly start: (index: number) => PoolProcess;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How a process ended. */
interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not be started. */
  readonly error?: string;
}

/** How the whole pool ended: `usage` where the first start of a process showed that the settings are wrong. */
export type PoolEnd = 'done' | 'failed' | 'usage';

const RESTART_MIN_MS = 1_000;

/**
 * Each time a process comes back it is given its part of the accounts, and each time it dies they wait out a takeover. So one
 * that dies again and again is left out for most of the time, and the others keep its accounts.
 */
const RESTART_MAX_MS = 5 * 60_000;

/**
 * A process that ran for this time, in ms, may be started again at once. Longer than a process takes that dies of what it
 * does, such as one that runs out of memory some minutes after its start: after a shorter time each of its deaths would
 * count as the first.
 */
const STEADY_AFTER_MS = 10 * 60_000;

/**
 * Keeps several worker processes running: starts another in place of one that ended, and waits longer each time it ends
 * soon. What a process is told, it is told by a message, see {@link stoppedByParent}.
 */
export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #running = new Set<PoolProcess>();
  readonly #wrongSettings = new AbortController();

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted and every process has ended, or the settings turn out to be wrong. */
  async run(stop: AbortSignal): Promise<PoolEnd> {
    const { signal: end } = followSignals(stop, this.#wrongSettings.signal);
    const indices = Array.from({ length: this.#options.count }, (_, index) => index);
    const wereInOrder = await Promise.all(indices.map(async (index) => this.#keep(index, end)));
    if (this.#wrongSettings.signal.aborted) return 'usage';
    return wereInOrder.every(Boolean) ? 'done' : 'failed';
  }

  /** Hands a signal on to every process. */
  signal(signal: NodeJS.Signals): void {
    for (const child of this.#running) child.kill(signal);
  }

  /** @returns whether the last process ended in good order */
  async #keep(index: number, end: AbortSignal): Promise<boolean> {
    const { clock, logger } = this.#options;
    let pauseMs = RESTART_MIN_MS;
    for (let starts = 1; !isAborted(end); starts += 1) {
      const startedAt = clock.now();
      const ended = await this.#runOnce(index, end);
      if (isAborted(end)) return ended.code === EXIT_CODES.done;
      // Later, a file that was changed meanwhile may be corrected, and the other processes work on.
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
    // It was to be started again: nothing of it is under way.
    return true;
  }

  async #runOnce(index: number, end: AbortSignal): Promise<ProcessEnd> {
    const { start, logger } = this.#options;
    let child: PoolProcess;
    try {
      child = start(index);
    } catch (error) {
      // Node throws some reasons, such as ENOMEM, and emits others. The other processes work on.
      return { code: null, signal: null, error: (error as Error).message };
    }
    this.#running.add(child);
    logger.info({ process: index + 1, pid: child.pid }, 'started a worker process');
    const onEnd = (): void => {
      // One that is just ending cannot be told any more.
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

/** What `payouts worker --processes` tells its processes when it is to stop. */
const STOP_MESSAGE = 'stop';

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
