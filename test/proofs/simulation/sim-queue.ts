import { isAborted, type Clock } from '../../../src/base/clock.js';
import { sendUntilDecided, type ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import type { WorkerLedger } from './ledger-link.js';
import type { World } from './world.js';

/** The process that a worker runs in, as far as the worker sees it. */
export interface WorkerProcess extends Clock {
  readonly name: string;
  readonly world: Pick<World, 'note' | 'fault'>;
}

export interface SimQueueOptions {
  readonly process: WorkerProcess;
  readonly ledger: WorkerLedger;
  readonly active: ActiveSender;
  /** How often a job is run again although its payout was dealt with, as BullMQ does after a stall. */
  readonly ringsTwice: number;
}

const IDLE_MS = 500;
/** A job that was put back is taken again until the worker is closed. */
const PUT_BACK_MS = 10;

/** Stands in for BullMQ: runs a job for every payout that is queued, one at a time, so that no job is ever missing. */
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
        await this.#runJob(payoutId);
        if (process.world.fault(ringsTwice)) await this.#runJob(payoutId);
        if (isAborted(this.#stop.signal)) return;
      }
    }
  }

  async #runJob(payoutId: string): Promise<void> {
    const { process } = this.#options;
    const { signal } = this.#stop;
    const { kind } = await sendUntilDecided(payoutId, this.#traced(), signal);
    if (kind === 'put_back') await process.sleep(PUT_BACK_MS, signal);
  }

  #traced(): ActiveSender {
    const { process, active } = this.#options;
    return {
      ...active,
      sender: {
        send: async (payoutId, stop) => {
          const report = await active.sender.send(payoutId, stop);
          process.world.note(() => `${process.name} ${payoutId}: ${JSON.stringify(report)}`);
          return report;
        },
      },
    };
  }
}
