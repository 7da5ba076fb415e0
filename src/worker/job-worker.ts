import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';

/** BullMQ waits without a limit for a Redis that is away, to mark a job as done that the ledger has recorded long ago. */
const CLOSE_WITHIN_MS = 5_000;

/**
 * Closes a BullMQ worker, and does not let a Redis that is away hold up the end of the process. What is left open then
 * ends with the connection that it was given.
 */
export async function closeWorker(worker: Worker): Promise<void> {
  const waited = new AbortController();
  const closing = worker.close().finally(() => {
    waited.abort();
  });
  await Promise.race([closing, delay(CLOSE_WITHIN_MS, undefined, { signal: waited.signal }).catch(() => undefined)]);
  closing.catch(() => undefined);
}
