import type { AccountSettings } from '../account-settings.js';
import { isAborted, untilAborted, type Clock } from '../clock.js';
import type { WithdrawGateway } from '../gateway/withdraw-gateway.js';
import type { SenderLedger } from '../ledger/sender-ledger.js';
import type { Logger } from '../logger.js';
import { LeaseKeeper, type HeldLease } from './lease-keeper.js';
import { onAnyClock, type Pacer } from './pacer.js';
import { recoverRegularly, recoverSends, type RecoveryOptions } from './recovery.js';
import { ADOPT_HINT, findDisagreement, type SendJournal } from './send-journal.js';
import { Sender } from './sender.js';
import type { WorkerObserver } from './worker-observer.js';

/** What an account's worker is doing. */
export type SenderStatus =
  | { readonly role: 'standby' }
  | { readonly role: 'sender'; readonly epoch: number }
  /** It must not send: the reason says why and what to do. */
  | { readonly role: 'refused'; readonly reason: string };

/** The settings that decide when may be sent. */
export type SendingSettings = Pick<
  AccountSettings,
  'intervalMs' | 'inFlightMaxMs' | 'leaseMs' | 'quarantineMs' | 'maxRejectionsInARow' | 'maxUnknownsInARow'
>;

/** What is done while the lease is held. */
export interface SenderDuty {
  readonly sender: Sender;
  /** To be told when the ledger is not the one that the journal knows. */
  readonly onRefused: (reason: string) => void;
  readonly logger: Logger;
}

export interface SenderRoleOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly delivery: RecoveryOptions['delivery'];
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly settings: SendingSettings;
  /** See {@link GUARD_MS}; a simulation may plant another. */
  readonly guardMs: number;
  /** A name for the lease that no other start of any process has. */
  readonly makeOwner: () => string;
  /** Pauses the account in the name of the journal. */
  readonly pause: (reason: string) => Promise<unknown>;
  /** Has payouts sent until the signal is aborted, and returns once the send under way is over. */
  readonly work: (duty: SenderDuty, end: AbortSignal) => Promise<void>;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

/** When the role is to be given up. */
export interface SenderRoleEnd {
  /** No new send begins; the one under way gets its answer. */
  readonly stop: AbortSignal;
  /** The process ends and Redis can be waited for no longer. */
  readonly giveUp: AbortSignal;
}

/** From asking to begin a send until its first byte. A process that was stopped for longer must not write. */
export const GUARD_MS = 1_000;

const PAUSE_RETRY_MS = 500;
const RESTART_AFTER_MS = 1_000;

/** The role of an account's one sender: stands by until the lease is there, then has payouts sent for as long as it is held. */
export class SenderRole {
  readonly #options: SenderRoleOptions;
  #status: SenderStatus = { role: 'standby' };

  constructor(options: SenderRoleOptions) {
    this.#options = options;
  }

  get status(): SenderStatus {
    return this.#status;
  }

  /** Runs until it is to stop. */
  async run(end: SenderRoleEnd): Promise<void> {
    const { clock, logger } = this.#options;
    while (!isAborted(end.stop)) {
      const held = await this.#makeKeeper().acquire(end.stop);
      if (held === undefined) return;
      try {
        await this.#sendWhileHeld(held, end);
      } catch (error) {
        held.abandon();
        logger.error({ error: (error as Error).message }, 'the sender was interrupted and starts anew');
        await clock.sleep(RESTART_AFTER_MS, end.stop);
      }
      // A refusal stands until nothing is objected to any more.
      if (this.#status.role === 'sender') this.#status = { role: 'standby' };
    }
  }

  #makeKeeper(): LeaseKeeper {
    const { clock, ledger, settings, guardMs, makeOwner, pause, logger } = this.#options;
    const { leaseMs, quarantineMs, intervalMs, inFlightMaxMs } = settings;
    return new LeaseKeeper({
      clock,
      ledger,
      owner: makeOwner(),
      leaseMs,
      quarantineMs,
      intervalMs,
      unansweredMs: onAnyClock(guardMs + inFlightMaxMs) + intervalMs,
      findObjection: async () => {
        const objection = await this.#findObjection();
        this.#noteObjection(objection);
        if (objection !== undefined) await pause(objection);
        return objection;
      },
      logger,
    });
  }

  /** The journal first, the ledger after: the present holder may add to both in between, and the ledger leads. */
  async #findObjection(): Promise<string | undefined> {
    const { journal, ledger, clock } = this.#options;
    try {
      await journal.reload();
    } catch (error) {
      return (error as Error).message;
    }
    return findDisagreement(journal, await ledger.readSender(), ledger, clock.wallNow());
  }

  /** Says it once. */
  #noteObjection(reason: string | undefined): void {
    const { status } = this;
    if (reason === undefined) {
      if (status.role === 'refused') this.#status = { role: 'standby' };
      return;
    }
    if (status.role === 'refused' && status.reason === reason) return;
    this.#status = { role: 'refused', reason };
    this.#options.logger.error({ reason }, ADOPT_HINT);
  }

  async #sendWhileHeld(held: HeldLease, { stop, giveUp }: SenderRoleEnd): Promise<void> {
    const { clock, ledger, delivery, journal, gateway, pacer, settings, guardMs, observer } = this.#options;
    const { lease } = held;
    const logger = this.#options.logger.child({ epoch: lease.epoch });
    await this.#bindJournal(held);
    await recoverSends({ ledger, lease, logger });
    const { maxRejectionsInARow, maxUnknownsInARow } = settings;
    const sender = new Sender({
      clock,
      ledger,
      journal,
      gateway,
      pacer,
      held,
      giveUp,
      guardMs,
      maxRejectionsInARow,
      maxUnknownsInARow,
      observer,
      logger,
    });
    const refused = new AbortController();
    const failed = new AbortController();
    const onRefused = (reason: string): void => {
      this.#noteObjection(reason);
      refused.abort(reason);
    };
    this.#status = { role: 'sender', epoch: lease.epoch };
    const end = AbortSignal.any([stop, held.lost, refused.signal, failed.signal]);
    const parts = [
      this.#options.work({ sender, onRefused, logger }, end),
      recoverRegularly({ clock, ledger, delivery, lease, sender, onRefused, logger }, end),
      this.#pauseWhenRefused(refused.signal, end, giveUp),
    ];
    try {
      await Promise.all(parts);
    } finally {
      // Where one part fails, the lease is kept until the others have ended too.
      failed.abort();
      await Promise.allSettled(parts);
    }
    // Whoever refuses this ledger must not look like a holder that ended in good order.
    if (refused.signal.aborted) held.abandon();
    else await held.release();
  }

  /**
   * Stops the whole account: a worker on another host, whose journal has not seen what this one has, would send on.
   * The lease is kept until that is done, for the same reason.
   */
  async #pauseWhenRefused(refused: AbortSignal, end: AbortSignal, giveUp: AbortSignal): Promise<void> {
    const { clock, pause, logger } = this.#options;
    await untilAborted(end);
    while (refused.aborted && !giveUp.aborted) {
      try {
        await pause(String(refused.reason));
        return;
      } catch (error) {
        logger.warn({ error: (error as Error).message }, 'cannot pause the account yet');
        await clock.sleep(PAUSE_RETRY_MS, giveUp);
      }
    }
  }

  /** A journal that is new on this host learns with which ledger it is used. */
  async #bindJournal({ view, lease }: HeldLease): Promise<void> {
    const { journal, logger } = this.#options;
    if (journal.ledger !== undefined) return;
    if (view.sends > 0) {
      logger.warn(
        { sends: view.sends },
        'the send journal of this host is new: it can witness nothing that was sent before',
      );
    }
    await journal.bind({ ledgerId: view.ledgerId, epoch: lease.epoch, sends: view.sends });
  }
}
