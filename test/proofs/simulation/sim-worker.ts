import { untilAborted } from '../../../src/base/clock.js';
import type { WithdrawGateway } from '../../../src/gateway/gateway.js';
import type { Logger } from '../../../src/base/logger.js';
import type { AccountPolicy } from '../../../src/control/worker/account-policy.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import type { Pacer } from '../../../src/worker/sender/pacer.js';
import type { SendJournal } from '../../../src/journal/send-journal.js';
import type { JournalPlace } from '../../../src/ledger/sender-ledger.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { SenderLoop } from '../../../src/worker/sender/sender-loop.js';
import { KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import type { WorkerLedger } from './ledger-link.js';
import type { Settings } from './plan.js';
import { SimQueue, type WorkerProcess } from './sim-queue.js';

export interface SimWorkerOptions {
  readonly process: WorkerProcess;
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
  readonly policy?: AccountPolicy | undefined;
  /** In signed mode. */
  readonly authority?: (SendAuthority & ResumeAuthority) | undefined;
}

const OPEN_AGAIN_MS = 3_000;

/** The simulated queue has a job for every payout that is queued. */
const nothingToRelay = async (): Promise<number> => Promise.resolve(0);

/** The real sender loop, with a simulated queue instead of BullMQ. */
export class SimWorker {
  readonly #options: SimWorkerOptions;
  readonly #loop: SenderLoop;
  readonly #stop = new AbortController();
  /** Whether it has read its journal. */
  isOpen = false;
  #owners = 0;

  constructor(options: SimWorkerOptions) {
    this.#options = options;
    const { process, ledger, journal, journalPlace, makeToken, gateway, pacer, settings, guardMs, logger } = options;
    const { authority, policy } = options;
    const runtime: SenderRuntime = {
      clock: process,
      senderLedger: ledger,
      relayOutbox: nothingToRelay,
      journal,
      audience: 'test',
      journalPlace,
      journalKeptMs: Infinity,
      makeToken: () => makeToken(this.#epoch),
      gateway,
      pacer,
      settings: { ...settings, maxRejectionsInARow: 4, maxPayoutRejectionsInARow: 50, maxUnknownsInARow: 2 },
      guardMs,
      hindrance: () => undefined,
      makeOwner: () => `${process.name}.${(this.#owners += 1)}`,
      authority: policy?.authority ?? authority,
      observer: noObserver,
      logger,
    };
    const pause = authority && new KeptPause(runtime, authority);
    this.#loop = new SenderLoop(runtime, this.#stop.signal, async (active, end) => this.#work(active, end), pause);
  }

  /** Why it must not send, where that is so. */
  get mismatch(): string | undefined {
    const { status } = this.#loop;
    return status.role === 'refused' ? status.reason : undefined;
  }

  /** Its journal cannot know what was sent before. */
  get isUnadopted(): boolean {
    return this.mismatch?.includes('payouts audit adopt-journal') === true;
  }

  get #epoch(): number {
    const { status } = this.#loop;
    return status.role === 'sender' ? status.epoch : 0;
  }

  /** True while it takes itself for the sender. */
  get isSender(): boolean {
    return this.#loop.status.role === 'sender';
  }

  /** Runs until it is stopped. */
  async run(): Promise<void> {
    const { journal, process } = this.#options;
    while (!this.isOpen) {
      try {
        await journal.reload();
        this.isOpen = true;
      } catch {
        await process.sleep(OPEN_AGAIN_MS, this.#stop.signal);
        if (this.isStopping) return;
      }
    }
    await this.#loop.run();
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

  async #work(active: ActiveSender, end: AbortSignal): Promise<void> {
    const { process, ledger, policy, ringsTwice } = this.#options;
    // Not `await policy?.…`: a step more would make other runs of the seeds without a policy.
    if (policy !== undefined) await policy.takeOver(end);
    const kept = policy?.keep(end);
    const queue = new SimQueue({ process, ledger, active, ringsTwice });
    const running = queue.run();
    await untilAborted(end);
    queue.stop();
    await running;
    if (kept !== undefined) await kept;
  }
}
