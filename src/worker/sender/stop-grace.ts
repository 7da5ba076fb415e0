import type { Clock } from '../../clock.js';

export interface StopGraceOptions {
  readonly clock: Clock;
  readonly stop: AbortSignal;
  readonly graceMs: number;
}

/** Decides when a stopping process no longer waits for Redis. */
export class StopGrace {
  readonly #options: StopGraceOptions;

  constructor(options: StopGraceOptions) {
    this.#options = options;
  }

  /** The grace begins at the stop or now, whichever is later. @returns whether it is over, when called */
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
