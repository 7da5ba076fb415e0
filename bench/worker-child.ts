// A process with a payout worker, which separates its CPU time from the benchmark's. Driven by messages from
// worker-process.ts.
import {
  createPayoutWorker,
  openSigner,
  type PayoutWorker,
  type PayoutWorkerOptions,
  type WorkerObserver,
} from 'payout-queue';
import { noObserver } from '../src/worker/sender/worker-observer.js';

const DEFAULT_INTERVAL_MS = 1_010;
const overheadsMs: number[] = [];
let worker: PayoutWorker | undefined;

type Asked =
  | { readonly kind: 'start'; readonly options: PayoutWorkerOptions & { readonly receiptKeyFile?: string } }
  | { readonly kind: 'report' | 'stop' };

/** The answer to `report`. */
export interface ChildReport {
  readonly cpuUsage: NodeJS.CpuUsage;
  readonly rss: number;
  readonly overheadsMs: readonly number[];
}

process.on('message', (asked: Asked) => void answer(asked));

async function answer(asked: Asked): Promise<void> {
  if (asked.kind === 'start') {
    const observe = () => observeOverhead(DEFAULT_INTERVAL_MS);
    const { receiptKeyFile, ...options } = asked.options;
    const receiptSigner = receiptKeyFile === undefined ? undefined : openSigner(receiptKeyFile, { name: 'worker-1' });
    worker = await createPayoutWorker({ ...options, receiptSigner, observe });
    process.send?.({ kind: 'started' });
  } else if (asked.kind === 'report') {
    const report: ChildReport = { cpuUsage: process.cpuUsage(), rss: process.memoryUsage.rss(), overheadsMs };
    process.send?.(report);
  } else {
    await worker?.stop();
    process.exit();
  }
}

// The benchmark was ended.
process.once('disconnect', () => process.exit());

/** How much longer a period was than interval + T, where T is the time that the previous request took. */
function observeOverhead(intervalMs: number): WorkerObserver {
  let lastDurationMs = NaN;
  let durationMs = NaN;
  return {
    ...noObserver,
    sent(_outcome, tookMs) {
      lastDurationMs = durationMs;
      durationMs = tookMs;
    },
    sendGap(gapMs) {
      overheadsMs.push(gapMs - intervalMs - lastDurationMs);
    },
  };
}
