import { isAborted, untilAborted } from '../../src/clock.js';
import type { WithdrawGateway } from '../../src/gateway/withdraw-gateway.js';
import type { Logger } from '../../src/logger.js';
import { LeaseKeeper, type HeldLease } from '../../src/worker/lease-keeper.js';
import { onAnyClock, type Pacer } from '../../src/worker/pacer.js';
import { recoverSends } from '../../src/worker/recovery.js';
import { findDisagreement, type SendJournal } from '../../src/worker/send-journal.js';
import { Sender } from '../../src/worker/sender.js';
import { noObserver } from '../../src/worker/worker-observer.js';
import type { WorkerLedger } from './ledger-link.js';
import type { Settings } from './plan.js';
import { SimQueue } from './sim-queue.js';
import type { SimProcess } from './sim-process.js';

export interface SimWorkerOptions {
  readonly process: SimProcess;
  readonly ledger: WorkerLedger;
  readonly keeperLedger: WorkerLedger;
  readonly gateway: WithdrawGateway;
  readonly journal: SendJournal;
  readonly pacer: Pacer;
  readonly settings: Settings;
  readonly guardMs: number;
  readonly ringsTwice: number;
  readonly logger: Logger;
}

const GIVE_UP_AFTER_MS = 10_000;
const RECOVER_EVERY_MS = 2_000;

/** What `AccountWorker` is made of, put together the same way, with a simulated queue in the place of BullMQ. */
export class SimWorker {
  /** Why it must not send, where that is so. */
  refusal: string | undefined;
  readonly #options: SimWorkerOptions;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  #starts = 0;

  constructor(options: SimWorkerOptions) {
    this.#options = options;
  }

  /** Runs until it is stopped. */
  async run(): Promise<void> {
    const { process, keeperLedger, settings, logger } = this.#options;
    await this.#options.journal.reload();
    while (!isAborted(this.#stop.signal)) {
      this.#starts += 1;
      const keeper = new LeaseKeeper({
        clock: process,
        ledger: keeperLedger,
        owner: `${process.name}.${this.#starts}`,
        leaseMs: settings.leaseMs,
        quarantineMs: settings.quarantineMs,
        intervalMs: settings.intervalMs,
        unansweredMs: onAnyClock(settings.guardMs + settings.inFlightMaxMs) + settings.intervalMs,
        findObjection: async () => {
          this.refusal = await this.#findObjection();
          return this.refusal;
        },
        logger,
      });
      const held = await keeper.acquire(this.#stop.signal);
      if (held === undefined) return;
      try {
        await this.#sendWhileHeld(held);
      } catch (error) {
        held.abandon();
        logger.error({ error: (error as Error).message }, 'interrupted');
        await process.sleep(1_000, this.#stop.signal);
      }
    }
  }

  /** Ends in good order. */
  stop(): void {
    this.#stop.abort();
    void this.#options.process.sleep(GIVE_UP_AFTER_MS).then(() => {
      this.#giveUp.abort();
    });
  }

  /** Ends the waiting of a process that is dead: it does no more than come to its next wait. */
  forget(): void {
    this.#stop.abort();
    this.#giveUp.abort();
  }

  async #findObjection(): Promise<string | undefined> {
    const { journal, ledger, process } = this.#options;
    await journal.reload();
    return findDisagreement(journal, await ledger.readSender(), ledger, process.wallNow());
  }

  async #sendWhileHeld(held: HeldLease): Promise<void> {
    const { process, ledger, journal, gateway, pacer, guardMs, ringsTwice, logger } = this.#options;
    const { lease, view } = held;
    if (journal.ledger === undefined) {
      await journal.bind({ ledgerId: view.ledgerId, epoch: lease.epoch, sends: view.sends });
    }
    await recoverSends({ ledger, lease, logger });
    const sender = new Sender({
      clock: process,
      ledger,
      journal,
      gateway,
      pacer,
      held,
      giveUp: this.#giveUp.signal,
      guardMs,
      maxRejectionsInARow: 4,
      maxUnknownsInARow: 2,
      observer: noObserver,
      logger,
    });
    const refused = new AbortController();
    const onRefused = (reason: string): void => {
      this.refusal = reason;
      refused.abort();
    };
    const queue = new SimQueue({ process, ledger, sender, ringsTwice, onRefused });
    const end = AbortSignal.any([this.#stop.signal, held.lost, refused.signal]);
    const running = queue.run();
    const recovery = this.#recoverRegularly(held, sender, onRefused, end);
    await untilAborted(end);
    if (this.refusal !== undefined) await ledger.pause(this.refusal).catch(() => undefined);
    queue.stop();
    await running;
    await recovery;
    if (refused.signal.aborted) held.abandon();
    else await held.release();
  }

  async #recoverRegularly(
    { lease }: HeldLease,
    sender: Sender,
    onRefused: (reason: string) => void,
    end: AbortSignal,
  ): Promise<void> {
    const { process, ledger, logger } = this.#options;
    while (!isAborted(end)) {
      try {
        await recoverSends({ ledger, lease, logger });
        const refusal = await sender.checkLedger();
        if (refusal !== undefined) onRefused(refusal);
      } catch {
        // Redis is away: the next time will do.
      }
      await process.sleep(RECOVER_EVERY_MS, end);
    }
  }
}
