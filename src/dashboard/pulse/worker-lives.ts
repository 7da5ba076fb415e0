import type { KnownWorker } from '../../ledger/workers.js';

/** A worker process, and for how long it has reported nothing. */
export interface ObservedWorker extends KnownWorker {
  readonly silentMs: number;
}

/** A process reports every five seconds. */
export const WORKER_SILENT_AFTER_MS = 8_000;

/** Follows the reports of the worker processes: one whose report changes is alive. */
export class WorkerLives {
  #reports = new Map<string, { readonly worker: KnownWorker; readonly changedAt: number }>();

  /**
   * @param now - monotonic, ms
   * @param wallNow - of Redis: for a process that was not observed before there is no better measure
   */
  note(workers: readonly KnownWorker[], now: number, wallNow: number): void {
    this.#reports = new Map(
      workers.map((worker) => {
        const before = this.#reports.get(worker.name);
        if (before === undefined) return [worker.name, { worker, changedAt: now - Math.max(0, wallNow - worker.at) }];
        return [worker.name, { worker, changedAt: before.worker.at === worker.at ? before.changedAt : now }];
      }),
    );
  }

  observe(now: number): ObservedWorker[] {
    return [...this.#reports.values()].map(({ worker, changedAt }) => ({ ...worker, silentMs: now - changedAt }));
  }
}
