import { isAborted } from '../../../src/clock.js';
import type { LedgerMismatch } from '../../../src/journal/find-mismatch.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import type { Sender } from '../../../src/worker/sender/sender.js';
import type { WorkerLedger } from './ledger-link.js';
import type { SimProcess } from './sim-process.js';

export interface SimQueueOptions {
  readonly process: SimProcess;
  readonly ledger: WorkerLedger;
  readonly sender: Pick<Sender, 'send'>;
  /** How often a job is run again although its payout was dealt with, as BullMQ does after a stall. */
  readonly ringsTwice: number;
  readonly onRefused: (mismatch: LedgerMismatch) => void;
}

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 30_000;
const PAUSED_LOOK_MS = 1_000;
const IDLE_MS = 500;

/** Rings for every payout that is queued, one at a time, and answers reports as `WithdrawJobs` does. */
export class SimQueue {
  readonly #options: SimQueueOptions;
  readonly #stop = new AbortController();

  constructor(options: SimQueueOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stop.abort();
  }

  async run(): Promise<void> {
    const { process, ledger, ringsTwice } = this.#options;
    while (!isAborted(this.#stop.signal)) {
      const queued = await ledger.queued().catch(() => []);
      if (queued.length === 0) await process.sleep(IDLE_MS, this.#stop.signal);
      for (const payoutId of queued) {
        await this.#ring(payoutId);
        if (process.world.fault(ringsTwice)) await this.#ring(payoutId);
        if (isAborted(this.#stop.signal)) return;
      }
    }
  }

  /** Until the payout is dealt with, or no more may be sent. */
  async #ring(payoutId: string): Promise<void> {
    const { process, onRefused } = this.#options;
    const signal = this.#stop.signal;
    for (let delayMs = RETRY_MIN_MS; !isAborted(signal); delayMs = Math.min(delayMs * 2, RETRY_MAX_MS)) {
      const report = await this.#send(payoutId);
      process.world.note(() => `${process.name} ${payoutId}: ${JSON.stringify(report)}`);
      switch (report.kind) {
        case 'sent':
        case 'skipped':
        case 'early':
          return;
        case 'not_sent':
          await process.sleep(delayMs, signal);
          break;
        case 'paused':
        case 'objected':
          await this.#waitWhilePaused();
          break;
        case 'ledger_refused':
          onRefused(report.mismatch);
          this.#stop.abort();
          return;
        case 'lease_lost':
        case 'stopped':
          // The job goes back to the queue, which runs it again until the worker is closed.
          await process.sleep(10, signal);
          return;
      }
    }
  }

  async #send(payoutId: string): Promise<SendReport> {
    try {
      return await this.#options.sender.send(payoutId, this.#stop.signal);
    } catch (error) {
      return { kind: 'not_sent', reason: (error as Error).message };
    }
  }

  async #waitWhilePaused(): Promise<void> {
    const { process, ledger } = this.#options;
    while (!isAborted(this.#stop.signal)) {
      await process.sleep(PAUSED_LOOK_MS, this.#stop.signal);
      const view = await ledger.readSender().catch(() => undefined);
      if (view !== undefined && view.pausedReason === undefined && view.objections.length === 0) return;
    }
  }
}
