/**
 * Start reading here. This folder is exactly what the simulation runs: the rules by which an account's one sender
 * sends, on ports for clock, ledger, journal and gateway.
 */

import { followSignals, isAborted, untilAborted } from '../../base/clock.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { ADOPT_HINT, JournalAudit, UNKNOWING_HINT } from './journal-audit.js';
import { LeaseKeeper, type HeldLease } from './lease-keeper.js';
import { LedgerOutcomeRecorder } from './ledger-outcome-recorder.js';
import { recoverRegularly } from './recover-sends.js';
import type { ActiveSender } from './send-until-decided.js';
import type { KeptPause } from './kept-pause.js';
import { StatusTracker, type SenderStatus } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';
import { Sender } from './sender.js';
import { StopGrace } from './own-outcome-recorder.js';

type Work<Runtime extends SenderRuntime> = (active: ActiveSender<Runtime>, end: AbortSignal) => Promise<void>;

interface SenderEnd {
  readonly end: AbortSignal;
  readonly lost: AbortSignal;
  readonly findMismatch: () => LedgerMismatch | undefined;
}

/** A stopping process gives Redis this long to take the last outcome or an objection. */
const STOP_GRACE_MS = 10_000;
const OBJECT_RETRY_MS = 500;
const RESTART_AFTER_MS = 1_000;

const FORMAT_HINT = 'this process sends nothing: the ledger was written by another version';

/** The one sender of an account: waits for the lease, then works while it is held. */
export class SenderLoop<Runtime extends SenderRuntime = SenderRuntime> {
  readonly #runtime: Runtime;
  readonly #stop: AbortSignal;
  readonly #work: Work<Runtime>;
  readonly #pause: KeptPause | undefined;
  readonly #stopGrace: StopGrace;
  readonly #status: StatusTracker;
  readonly #audit: JournalAudit;

  /**
   * @param stop - aborted when the process must stop; the send in progress gets its response
   * @param work - runs while the lease is held, and resolves after the send in progress
   * @param pause - undefined if payouts need no signature
   */
  constructor(runtime: Runtime, stop: AbortSignal, work: Work<Runtime>, pause: KeptPause | undefined) {
    this.#runtime = runtime;
    this.#stop = stop;
    this.#work = work;
    this.#pause = pause;
    const { clock, logger } = runtime;
    this.#stopGrace = new StopGrace(clock, stop, STOP_GRACE_MS);
    this.#status = new StatusTracker(logger);
    const outcomes = new LedgerOutcomeRecorder(runtime, pause);
    this.#audit = new JournalAudit(runtime, outcomes, this.#status, pause !== undefined);
  }

  get status(): SenderStatus {
    return this.#status.status;
  }

  async run(): Promise<void> {
    const { clock, logger } = this.#runtime;
    const stop = this.#stop;
    const keeper = new LeaseKeeper(this.#runtime, this.#audit, (reason) => {
      this.#status.refuse(reason, FORMAT_HINT);
    });
    while (!isAborted(stop)) {
      const heldLease = await keeper.acquire(stop);
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

  async #sendWhileHeld(heldLease: HeldLease): Promise<void> {
    const { lease, view } = heldLease;
    const runtime = { ...this.#runtime, logger: this.#runtime.logger.child({ epoch: lease.epoch }) };
    await this.#audit.bind(view, lease.epoch);
    const onUnrecordable = (reason: string | undefined): void => {
      if (reason === undefined) this.#status.becomeSender(lease.epoch);
      else this.#status.refuse(reason);
    };
    const sender = new Sender(runtime, heldLease, this.#stopGrace, onUnrecordable, this.#pause);
    const { recovery } = sender;
    await recovery.resolveLeftovers();
    const turn = followSignals(this.#stop, heldLease.lost);
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
      this.#work({ runtime, sender, onMismatch, onUnadopted, onOtherGateway }, end),
      recoverRegularly(runtime, recovery, onMismatch, end),
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

  /**
   * Stops the whole account if journal and ledger contradict each other: a worker on another host, whose journal lacks
   * these entries, would continue to send. The lease is kept until the objection is recorded.
   * A lost lease requires a comparison: Redis may have come back older.
   * @param over - the sender's work has ended; until its last response Redis may come back older, or forget the
   * objection
   */
  async #objectUntil(over: AbortSignal, { end, lost, findMismatch }: SenderEnd): Promise<void> {
    const { clock, logger } = this.#runtime;
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
