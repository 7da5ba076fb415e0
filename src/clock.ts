/** Time as this project uses it: intervals from a monotonic clock, dates for display only. */
export interface Clock {
  /** Milliseconds on a monotonic clock with an arbitrary start. The only time that grants permission to send. */
  now(): number;
  /** Milliseconds since 1970 on the wall clock, which may jump. For display, `notBefore` and retention only. */
  wallNow(): number;
  /**
   * Resolves after `ms` milliseconds or as soon as `signal` is aborted; never rejects.
   * Timers may fire a little early: a caller for whom that matters checks `now()` again.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** About 24 days. Node's timers fire after 1 ms when they are given a longer delay than this. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the machine: `performance.now()` and `Date.now()`. */
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

/** Not Node's own sleep: where it is aborted, which is the rule for a limit, it makes an error with its stack. */
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

/** Reads the signal again: the type checker assumes that a value from before an `await` still holds. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Resolves as soon as the signal is aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const onAbort = (): void => {
      resolve();
    };
    // Once: Node never collects a combined signal that still has a listener, even when it was aborted long ago.
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** A signal of several, for one turn of a loop. */
export interface TurnSignal {
  readonly signal: AbortSignal;
  /** Aborts the signal, and lets go of those that it followed. */
  readonly end: () => void;
}

/**
 * Follows several signals until its end. Node 20 never collects what `AbortSignal.any` makes of a signal that lives on: a
 * loop that makes one a turn fills the memory.
 */
export function followSignals(...signals: readonly AbortSignal[]): TurnSignal {
  const turn = new AbortController();
  const end = (): void => {
    for (const signal of signals) signal.removeEventListener('abort', end);
    turn.abort();
  };
  for (const signal of signals) signal.addEventListener('abort', end, { once: true });
  if (signals.some(({ aborted }) => aborted)) end();
  return { signal: turn.signal, end };
}

/**
 * Waits for `work`, but for `limitMs` at most. The work itself continues; its later result or failure is ignored.
 * @param clock - measures the limit
 * @returns the result of the work, or undefined when the limit was reached first
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
    // A timer that is left running would keep the process alive. With a reason: without one an error is made for it.
    settled.abort('settled');
  }
}

/** The rates of two machines' clocks differ by no more than this: NTP slews by 0.05 % at most, quartz is far better. */
const CLOCK_DRIFT_MAX = 0.001;

/** How long to wait on this clock, in ms, until `ms` milliseconds have passed on any other clock too. */
export function onAnyClock(ms: number): number {
  return ms * (1 + CLOCK_DRIFT_MAX);
}
