import { setTimeout as delay } from 'node:timers/promises';

/** Time as this project uses it: intervals from a clock that nobody can set, dates only for people to read. */
export interface Clock {
  /** Milliseconds on a monotonic clock with an arbitrary start. The only time that grants permission to send. */
  now(): number;
  /** Milliseconds since 1970 on the wall clock, which may jump. For display, `notBefore` and retention only. */
  wallNow(): number;
  /**
   * Resolves after `ms` milliseconds or as soon as `signal` is aborted; never rejects.
   * Timers may fire a little early: a caller for whom that matters asks `now()` again.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** About 24 days. Node's timers wait for 1 ms where they are told to wait for longer than this. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the machine: `performance.now()` and `Date.now()`. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  async sleep(ms, signal) {
    const options = signal === undefined ? {} : { signal };
    let leftMs = ms;
    try {
      for (; leftMs > LONGEST_TIMER_MS; leftMs -= LONGEST_TIMER_MS) await delay(LONGEST_TIMER_MS, undefined, options);
      await delay(leftMs, undefined, options);
    } catch {
      // Aborted: the caller looks at its signal.
    }
  },
};

/** Asks the signal anew. The type checker takes an answer from before an `await` for granted. */
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
    // Once: Node keeps a combined signal that has a listener left for ever, even when it was aborted long ago.
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** The rates of two machines' clocks differ by no more than this: NTP slews by 0.05 % at most, quartz is far better. */
const CLOCK_DRIFT_MAX = 0.001;

/** How long to wait on this clock until `ms` milliseconds are over on any other, too. */
export function onAnyClock(ms: number): number {
  return ms * (1 + CLOCK_DRIFT_MAX);
}
