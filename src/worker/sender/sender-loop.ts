/**
 * Start reading here. This folder is exactly what the simulation runs: the rules by which an account's one sender
 * sends, on ports for clock, ledger, journal and gateway.
 */

import type { AccountSettings } from '../../base/settings.js';
import { followSignals, isAborted, onAnyClock, untilAborted, type Clock } from '../../base/clock.js';
import type { WithdrawGateway } from '../../gateway/gateway.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { describeJournal, type SendJournal } from '../../journal/send-journal.js';
import type { JournalPlace, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Logger } from '../../base/logger.js';
import { ADOPT_HINT, JournalAudit, UNKNOWING_HINT } from './journal-audit.js';
import { LeaseKeeper, type HeldLease } from './lease-keeper.js';
import { OutcomeRecorder } from './outcome-recorder.js';
import type { Pacer } from './pacer.js';
import { recoverRegularly, type RelayOutbox } from './recover-sends.js';
import type { ActiveSender } from './send-until-decided.js';
import { KeptPause } from './kept-pause.js';
import type { ResumeAuthority, SendAuthority } from './send-authority.js';
import { StatusTracker, type SenderStatus } from './send-report.js';
import { Sender } from './sender.js';
import { StopGrace } from './attempt-recorder.js';
import type { WorkerObserver } from './worker-observer.js';

type SendingSettings = Pick<
  AccountSettings,
  'intervalMs' | 'inFlightMaxMs' | 'leaseMs' | 'quarantineMs' | 'maxRejectionsInARow' | 'maxUnknownsInARow'
>;

export interface SenderLoopOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly relayOutbox: RelayOutbox;
  readonly journal: SendJournal;
  readonly gateway: WithdrawGateway;
  readonly pacer: Pacer;
  readonly settings: SendingSettings;
  /** See {@link GUARD_MS}; a simulation may plant another. */
  readonly guardMs: number;
  readonly hindrance: () => string | undefined;
  /** No other start of any process has the same name. */
  readonly makeOwner: () => string;
  readonly makeToken: () => string;
  /** See `PAYOUT_AUDIENCE`. */
  readonly audience: string;
  readonly journalPlace: JournalPlace;
  /** How long the journal's files are kept. */
  readonly journalKeptMs: number;
  /** Aborted when the process must stop; the send in progress gets its response. */
  readonly stop: AbortSignal;
  /** Runs while the lease is held, and resolves after the send in progress. */
  readonly work: (active: ActiveSender, end: AbortSignal) => Promise<void>;
  readonly authority?: SendAuthority;
  /** Decides about kept pauses; undefined if the ledger alone does. */
  readonly resumeAuthority?: ResumeAuthority;
  /** @defaultValue one of this loop's own, if there is a `resumeAuthority` */
  readonly pause?: KeptPause;
  readonly observer: WorkerObserver;
  readonly logger: Logger;
}

interface SenderEnd {
  readonly end: AbortSignal;
  readonly lost: AbortSignal;
  readonly findMismatch: () => LedgerMismatch | undefined;
}

/** A stopping process gives Redis this long to take the last outcome or an objection. */
const STOP_GRACE_MS = 10_000;
const OBJECT_RETRY_MS = 500;
const RESTART_AFTER_MS = 1_000;

const FORMAT_HINT = 'this process sends nothing: the ledger was written by a newer version';

/** The one sender of an account: waits for the lease, then works while it is held. */
export class SenderLoop {
  readonly #options: SenderLoopOptions;
  readonly #stopGrace: StopGrace;
  readonly #status: StatusTracker;
  readonly #audit: JournalAudit;
  readonly #pause: KeptPause | undefined;

  constructor(options: SenderLoopOptions) {
    this.#options = options;
    const { clock, stop, settings, guardMs, resumeAuthority: authority, logger } = options;
    const pause = (this.#pause = options.pause ?? (authority && new KeptPause({ ...options, authority })));
    this.#stopGrace = new StopGrace({ clock, stop, graceMs: STOP_GRACE_MS });
    this.#status = new StatusTracker(logger);
    const doubtMs = onAnyClock(guardMs + settings.inFlightMaxMs);
    const outcomes = new OutcomeRecorder({ ...options, ...settings, doubtMs, pause });
    this.#audit = new JournalAudit({ ...options, isSigned: pause !== undefined, outcomes, status: this.#status });
  }

  get status(): SenderStatus {
    return this.#status.status;
  }

  async run(): Promise<void> {
    const { clock, stop, logger } = this.#options;
    while (!isAborted(stop)) {
      const heldLease = await this.#makeKeeper().acquire(stop);
      if (heldLease === undefined) return;
      try {
        await this.#sendWhileHeld(heldLease);
      } catch (error) {
        heldLease.stopHeartbeat();
        logger.error({ error: (error as Error).message }, 'sender loop failed; restarting');
        await clock.sleep(RESTART_AFTER_MS, stop);
      }
      this.#audit.replayAgain();
      this.#status.endSending();
    }
  }

  #makeKeeper(): LeaseKeeper {
    const { clock, ledger, journal, journalPlace, journalKeptMs, settings, guardMs, makeOwner, logger } = this.#options;
    const { intervalMs, inFlightMaxMs } = settings;
    return new LeaseKeeper({
      ...settings,
      clock,
      ledger,
      owner: makeOwner(),
      describeJournal: () => describeJournal(journal, journalPlace, clock.wallNow()),
      journalKeptMs,
      awaitingAnswerMs: (inFlightMs) => onAnyClock(guardMs + Math.max(inFlightMaxMs, inFlightMs)) + intervalMs,
      audit: this.#audit,
      onUnsupported: (reason) => {
        this.#status.refuse(reason, FORMAT_HINT);
      },
      logger,
    });
  }

  async #sendWhileHeld(heldLease: HeldLease): Promise<void> {
    const { clock, ledger, relayOutbox, observer, stop, work } = this.#options;
    const { lease, view } = heldLease;
    const logger = this.#options.logger.child({ epoch: lease.epoch });
    await this.#audit.bind(view, lease.epoch);
    const sender = this.#makeSender(heldLease, logger);
    const { recovery } = sender;
    await recovery.resolveLeftovers();
    const turn = followSignals(stop, heldLease.lost);
    const end = turn.signal;
    let mismatch: LedgerMismatch | undefined;
    const onMismatch = (found: LedgerMismatch): void => {
      mismatch ??= found;
      this.#status.refuse(found.reason, ADOPT_HINT);
      turn.end();
    };
    const onUnadopted = (reason: string): void => {
      this.#status.refuse(reason, UNKNOWING_HINT);
      turn.end();
    };
    const onOtherGateway = (audience: string): void => {
      this.#audit.refuseGateway(audience);
      turn.end();
    };
    this.#status.becomeSender(lease.epoch);
    const over = new AbortController();
    const sending = [
      work({ sender, clock, ledger, onMismatch, onUnadopted, onOtherGateway, observer, logger }, end),
      recoverRegularly({ clock, relayOutbox, recovery, onMismatch, logger }, end),
    ];
    void Promise.allSettled(sending).then(() => {
      over.abort();
    });
    const senderEnd = { end, lost: heldLease.lost, findMismatch: () => mismatch };
    const parts = [...sending, this.#objectUntil(over.signal, senderEnd)];
    try {
      await Promise.all(parts);
    } finally {
      // If one part fails, the lease is kept until the others have ended too.
      turn.end();
      await Promise.allSettled(parts);
    }
    // A process that refuses this ledger must not look like a holder that ended in good order.
    if (senderEnd.findMismatch() !== undefined) heldLease.stopHeartbeat();
    else await heldLease.release();
  }

  #makeSender(heldLease: HeldLease, logger: Logger): Sender {
    return new Sender({
      ...this.#options,
      ...this.#options.settings,
      heldLease,
      stopGrace: this.#stopGrace,
      pause: this.#pause,
      onUnrecordable: (reason) => {
        if (reason === undefined) this.#status.becomeSender(heldLease.lease.epoch);
        else this.#status.refuse(reason);
      },
      logger,
    });
  }

  /**
   * Stops the whole account if journal and ledger contradict each other: a worker on another host, whose journal lacks
   * these entries, would continue to send. The lease is kept until the objection is recorded.
   * A lost lease requires a comparison: Redis may have come back older.
   * @param over - the sender's work has ended; until its last response Redis may come back older, or forget the
   * objection
   */
  async #objectUntil(over: AbortSignal, { end, lost, findMismatch }: SenderEnd): Promise<void> {
    const { clock, logger } = this.#options;
    await untilAborted(end);
    if (findMismatch() === undefined) await Promise.race([untilAborted(lost), untilAborted(over)]);
    const isTooLate = this.#stopGrace.start();
    let mismatch = findMismatch();
    if (mismatch === undefined && !lost.aborted) return;
    while (!isTooLate()) {
      const isLast = over.aborted;
      try {
        if (mismatch === undefined) await this.#audit.findMismatch();
        else await this.#audit.object(mismatch);
        mismatch = undefined;
        if (isLast) return;
      } catch (error) {
        const fields = { error: (error as Error).message };
        if (mismatch === undefined) logger.debug(fields, 'cannot compare ledger and journal yet');
        else logger.warn(fields, 'cannot record the objection yet');
      }
      await clock.sleep(OBJECT_RETRY_MS, isLast ? undefined : over);
    }
  }
}
