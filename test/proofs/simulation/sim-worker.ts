import { untilAborted } from '../../../src/clock.js';
import type { WithdrawGateway } from '../../../src/gateway/withdraw-gateway.js';
import type { Logger } from '../../../src/logger.js';
import type { Pacer } from '../../../src/worker/sender/pacer.js';
import type { SendJournal } from '../../../src/journal/send-journal.js';
import type { JournalPlace } from '../../../src/ledger/sender-ledger.js';
import { SenderLoop, type ActiveSender } from '../../../src/worker/sender/sender-loop.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import type { WorkerLedger } from './ledger-link.js';
import type { Settings } from './plan.js';
import { SimQueue } from './sim-queue.js';
import type { SimProcess } from './sim-process.js';

export interface SimWorkerOptions {
  readonly process: SimProcess;
  readonly ledger: WorkerLedger;
  readonly gateway: WithdrawGateway;
  readonly journal: SendJournal;
  readonly journalPlace: JournalPlace;
  /** @param epoch - of its lease */
  readonly makeToken: (epoch: number) => string;
  readonly pacer: Pacer;
  readonly settings: Settings;
  readonly guardMs: number;
  readonly ringsTwice: number;
  readonly logger: Logger;
}

/** The simulated queue rings for every payout that is queued, so that no job is ever missing. */
const nothingToDeliver = { relayOutbox: async () => Promise.resolve(0) };

/** The real role of the sender, with a simulated queue in the place of BullMQ. */
export class SimWorker {
  readonly #options: SimWorkerOptions;
  readonly #role: SenderLoop;
  readonly #stop = new AbortController();
  #owners = 0;

  constructor(options: SimWorkerOptions) {
    this.#options = options;
    const { process, ledger, journal, journalPlace, makeToken, gateway, pacer, settings, guardMs, logger } = options;
    this.#role = new SenderLoop({
      clock: process,
      ledger,
      delivery: nothingToDeliver,
      journal,
      journalPlace,
      journalKeptMs: Infinity,
      makeToken: () => makeToken(this.#epoch),
      stop: this.#stop.signal,
      gateway,
      pacer,
      settings: { ...settings, maxRejectionsInARow: 4, maxUnknownsInARow: 2 },
      guardMs,
      hindrance: () => undefined,
      makeOwner: () => `${process.name}.${(this.#owners += 1)}`,
      work: async (duty, end) => this.#work(duty, end),
      observer: noObserver,
      logger,
    });
  }

  /** Why it must not send, where that is so. */
  get refusal(): string | undefined {
    const { status } = this.#role;
    return status.role === 'refused' ? status.reason : undefined;
  }

  get #epoch(): number {
    const { status } = this.#role;
    return status.role === 'sender' ? status.epoch : 0;
  }

  /** True while it takes itself for the sender. */
  get isSender(): boolean {
    return this.#role.status.role === 'sender';
  }

  /** Runs until it is stopped. */
  async run(): Promise<void> {
    await this.#options.journal.reload();
    await this.#role.run();
  }

  /** Ends in good order. */
  stop(): void {
    this.#stop.abort();
  }

  get isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Ends the waiting of a process that is dead: it does no more than come to its next wait. */
  forget(): void {
    this.#stop.abort();
  }

  async #work({ sender, onRefused }: ActiveSender, end: AbortSignal): Promise<void> {
    const { process, ledger, ringsTwice } = this.#options;
    const queue = new SimQueue({ process, ledger, sender, ringsTwice, onRefused });
    const running = queue.run();
    await untilAborted(end);
    queue.stop();
    await running;
  }
}
