import { Presets, SingleBar } from 'cli-progress';
import type { Terminal } from '../context/confirm.js';

/** A progress bar. */
export interface Progress {
  update(done: number): void;
  stop(): void;
}

const HIDDEN: Progress = { update: () => undefined, stop: () => undefined };

/**
 * Shows a progress bar if the stream, which is stderr, is a terminal.
 * @param total - what `update` counts up to; without it the count itself is shown
 */
export function startProgress(label: string, total: number | undefined, stream: Terminal['output']): Progress {
  if (stream.isTTY !== true) return HIDDEN;
  const options = {
    stream,
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
