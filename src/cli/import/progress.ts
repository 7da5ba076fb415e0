import { Presets, SingleBar } from 'cli-progress';

/** A bar on stderr that shows how far something is. */
export interface Progress {
  update(done: number): void;
  stop(): void;
}

const HIDDEN: Progress = { update: () => undefined, stop: () => undefined };

/**
 * Shows a progress bar where stderr is a terminal, and nothing elsewhere.
 * @param total - what `update` counts up to; where it is not known, the count itself is shown
 */
export function startProgress(label: string, total: number | undefined): Progress {
  if (!process.stderr.isTTY) return HIDDEN;
  const options = {
    stream: process.stderr,
    format: total === undefined ? `${label} {value}` : `${label} {bar} {percentage}%`,
    hideCursor: true,
    clearOnComplete: true,
  };
  const bar = new SingleBar(options, Presets.shades_classic);
  bar.start(total ?? 0, 0);
  return {
    update: (done) => {
      bar.update(done);
    },
    stop: () => {
      bar.stop();
    },
  };
}
