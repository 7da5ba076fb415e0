import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';

/** Time in this project: intervals from a monotonic clock, dates for display only. */
export interface Clock {
  /** Milliseconds on a monotonic clock with an arbitrary start. The only time that grants permission to send. */
  now(): number;
  /** Milliseconds since 1970 on the wall clock, which may jump. For display, `notBefore` and retention only. */
  wallNow(): number;
  /**
   * Resolves after `ms` milliseconds, or once `signal` aborts; never rejects. Timers may fire a little early, so check
   * `now()` again if that matters.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const DAY_MS = 24 * 60 * 60 * 1_000;

/** About 24 days. Node's timers fire after 1 ms for a longer delay. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `performance.now()` and `Date.now()`. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  async sleep(ms, signal) {
    let leftMs = ms;
    for (; leftMs > LONGEST_TIMER_MS && signal?.aborted !== true; leftMs -= LONGEST_TIMER_MS) {
      await sleepOnce(LONGEST_TIMER_MS, signal);
    }
    await sleepOnce(leftMs, signal);
  },
};

/**
 * How long ago the machine started, in ms, in steps of 10. It counts the time of a suspended machine, which
 * `performance.now()` leaves out, and never jumps.
 */
export function machineUptime(): number {
  return 1_000 * uptime();
}

/** Node's own sleep would make an error with a stack at each abort, which is the usual end of a time limit. */
async function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}

/** Reads the signal again: the type checker assumes that its value survives an `await`. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

interface LoopOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Ends the loop: at once while it waits, otherwise after the work in progress. */
  readonly signal: AbortSignal;
  /** Called with what the work threw; the loop goes on. */
  readonly onError: (error: Error) => void;
  /** Waits before the first run too. @defaultValue the first run is at once */
  readonly waitsFirst?: boolean;
}

/**
 * Repeats `work` until the signal is aborted, with a wait between the end of one run and the start of the next.
 * @param ms - the wait
 * @param work - may return a wait of its own, in ms
 */
export async function every(
  ms: number,
  work: (() => void) | (() => Promise<void>) | (() => Promise<number>),
  { clock, signal, onError, waitsFirst = false }: LoopOptions,
): Promise<void> {
  if (waitsFirst) await clock.sleep(ms, signal);
  while (!isAborted(signal)) {
    let result: unknown;
    try {
      // What is not asynchronous is not waited for: the order of a process's steps stays the same.
      const done = work();
      result = done instanceof Promise ? await done : done;
    } catch (error) {
      onError(error as Error);
    }
    await clock.sleep(typeof result === 'number' ? result : ms, signal);
  }
}

/** Resolves as soon as the signal is aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const onAbort = (): void => {
      resolve();
    };
    // Once: Node never collects a combined signal that has a listener, even one aborted long ago.
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

interface TurnSignal {
  readonly signal: AbortSignal;
  readonly end: () => void;
}

/** An account's work has a dozen loops on one signal. Node warns at eleven; many more would be a leak. */
const MAX_LISTENERS = 30;

/**
 * Follows several signals until its end. Node 20 never collects an `AbortSignal.any` of a living signal, so one for
 * each turn of a loop would fill the memory.
 */
export function followSignals(...signals: readonly AbortSignal[]): TurnSignal {
  const turn = new AbortController();
  setMaxListeners(MAX_LISTENERS, turn.signal);
  const end = (): void => {
    for (const signal of signals) signal.removeEventListener('abort', end);
    turn.abort();
  };
  for (const signal of signals) signal.addEventListener('abort', end, { once: true });
  if (signals.some(({ aborted }) => aborted)) end();
  return { signal: turn.signal, end };
}

/**
 * Waits for `work`, but for `limitMs` at most. The work continues; its later result or failure is ignored.
 * @param clock - measures the limit
 * @returns the result, or undefined if the limit came first
 * @throws whatever the work rejects with before the limit
 */
export async function within<Result>(
  limitMs: number,
  work: Promise<Result>,
  clock: Pick<Clock, 'sleep'> = systemClock,
): Promise<Result | undefined> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(limitMs, settled.signal).then(() => undefined)]);
  } finally {
    // A running timer would keep the process alive. The reason saves making an error.
    settled.abort('settled');
  }
}

/** The maximum difference of two machines' clock rates: NTP slews by 0.05 % at most, quartz is far better. */
const CLOCK_DRIFT_MAX = 0.001;

/** How long to wait on this clock, in ms, so that `ms` milliseconds pass on any other clock too. */
export function onAnyClock(ms: number): number {
  return ms * (1 + CLOCK_DRIFT_MAX);
}
