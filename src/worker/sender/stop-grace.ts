import type { Clock } from '../../clock.js';

export interface StopGraceOptions {
  readonly clock: Clock;
  /** Aborted when the process is asked to stop. */
  readonly stop: AbortSignal;
  /** For how long Redis is waited for after that, in ms. */
  readonly graceMs: number;
}

/** Tells when a process that is to stop may wait for Redis no longer. */
export class StopGrace {
  readonly #options: StopGraceOptions;

  constructor(options: StopGraceOptions) {
    this.#options = options;
  }

  /**
   * Begins to wait for something, such as the recording of a response. Its grace begins when the process is asked to stop, or
   * now, whichever is later.
   * @returns what says whether the grace is over
   */
  start(): () => boolean {
    const { clock, stop, graceMs } = this.#options;
    let stoppedAt: number | undefined;
    return () => {
      if (!stop.aborted) return false;
      stoppedAt ??= clock.now();
      return clock.now() - stoppedAt >= graceMs;
    };
  }
}
