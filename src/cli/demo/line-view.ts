import { formatMs } from '../../format.js';
import type { DemoView } from './demo-view.js';

/** One line for each change, for logs, pipes and CI. */
export function createLineView(write: (text: string) => void): DemoView {
  return {
    note: (text) => {
      write(`${text}\n`);
    },
    change: ({ from, row }, elapsedMs) => {
      const seconds = (elapsedMs / 1_000).toFixed(1).padStart(6);
      const gap =
        from === 'sending' && row.gapMs !== null ? ` (arrived ${formatMs(row.gapMs)} after the previous one)` : '';
      write(`${seconds} s  ${row.payoutId}  ${from} → ${row.state}${gap}\n`);
    },
    draw: () => undefined,
    close: () => undefined,
  };
}
