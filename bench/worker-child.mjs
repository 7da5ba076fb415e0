// A process with a payout worker, which separates its CPU time from the benchmark's. Driven by messages from
// worker-process.mjs.
import { createPayoutWorker } from '../dist/index.js';

const DEFAULT_INTERVAL_MS = 1_010;
const overheadsMs = [];
let worker;

process.on('message', async ({ kind, options }) => {
  if (kind === 'start') {
    const observe = () => observeOverhead(DEFAULT_INTERVAL_MS);
    worker = await createPayoutWorker({ ...options, observe });
    process.send({ kind: 'started' });
  } else if (kind === 'report') {
    process.send({ kind: 'report', cpuUsage: process.cpuUsage(), rss: process.memoryUsage.rss(), overheadsMs });
  } else {
    await worker?.stop();
    process.exit();
  }
});

// The benchmark was ended.
process.once('disconnect', () => process.exit());

/** How much longer a period was than interval + T, where T is the time that the previous request took. */
function observeOverhead(intervalMs) {
  let lastDurationMs;
  let durationMs;
  const ignore = () => undefined;
  return {
    sent(_outcome, tookMs) {
      lastDurationMs = durationMs;
      durationMs = tookMs;
    },
    sendGap(gapMs) {
      overheadsMs.push(gapMs - intervalMs - lastDurationMs);
    },
    pacerWaited: ignore,
    journalSynced: ignore,
    polled: ignore,
  };
}
