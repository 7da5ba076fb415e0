import { isAborted, type Clock } from '../../clock.js';
import { UnsupportedFormatError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import {
  isSameLease,
  type KnownJournal,
  type Lease,
  type SenderLedger,
  type SenderView,
} from '../../ledger/sender-ledger.js';
import type { JournalAudit } from './journal-audit.js';

export interface LeaseKeeperOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  /** Unique for every start of a process: a restarted one is another sender. */
  readonly owner: string;
  /** The journal in which the sends will be. */
  readonly describeJournal: () => KnownJournal;
  /** For how long files of a journal are kept, in ms: a journal that was not used for longer is forgotten. */
  readonly journalKeptMs: number;
  /** For how long there must be no heartbeat before the lease may be taken over, in ms. */
  readonly leaseMs: number;
  /** Silence after a take-over, before the first send, in ms. */
  readonly quarantineMs: number;
  /** Silence before the first send in any case, in ms. */
  readonly intervalMs: number;
  /**
   * For how long the request of an attempt without a response may still be written and in flight, in ms.
   * @param inFlightMs - for how long it may be in flight, by its sender's settings
   */
  readonly awaitingAnswerMs: (inFlightMs: number) => number;
  /**
   * Compares ledger and journal. The lease of a ledger that contradicts the journal is not taken: doing so would raise
   * the epoch and hide that the ledger is an older copy.
   */
  readonly audit: Pick<JournalAudit, 'findMismatch' | 'hasAllSends' | 'refuseStalled'>;
  /** Told that the ledger is of a format that this version does not know. */
  readonly onUnsupported: (reason: string) => void;
  readonly logger: Logger;
}

/** What was read of the ledger, and since when its lease has shown no heartbeat. */
interface LeaseObservation {
  readonly view: SenderView;
  readonly since: number;
}

/** The lease, as its holder has it. */
export interface HeldLease {
  readonly lease: Lease;
  /** The ledger as it was when the lease was won. */
  readonly view: SenderView;
  /** The first send is allowed from then on, on the clock's scale. */
  readonly firstSendAt: number;
  /** The number of the last heartbeat that the ledger acknowledged. */
  readonly heartbeat: () => number;
  /**
   * Aborted as soon as the ledger says that another process has the lease, or the journal's disk hangs: another process, with
   * another disk, then takes the lease over.
   */
  readonly lost: AbortSignal;
  /** Gives the lease back: only after the last response. */
  release(): Promise<void>;
  /** Stops the heartbeat without giving the lease back. */
  stopHeartbeat(): void;
}

/** How the lease was lost: it is another's, the ledger came back as it was some heartbeats ago, or this process cannot send. */
const LOST_MESSAGES = {
  taken: 'another process has taken the lease',
  older: 'the ledger came back older; giving up the lease',
  stalled: 'the disk of the send journal does not answer; giving up the lease',
} as const;
const HEARTBEAT_EVERY_MS = 1_000;
/** After a mismatch: comparing reads much of ledger and journal, and only an operator can resolve it. */
const COMPARE_AGAIN_MS = 3_000;
/** A standby process compares ledger and journal this often, also where nothing seems to have changed. */
const COMPARE_EVERY_MS = 10_000;

/**
 * Gets and keeps the right to send for an account.
 *
 * Another process's lease is taken over only after this one has itself observed no heartbeat for the lease time, on its own
 * monotonic clock. A lease that is absent is treated the same: the key may have been lost while its holder lives. Key
 * expiry and the clock of Redis are not used, because those jump.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /**
   * Watches until the lease can be had, and takes it.
   * @returns undefined when the signal was aborted first
   */
  async acquire(signal: AbortSignal): Promise<HeldLease | undefined> {
    const { clock, ledger, owner, leaseMs, describeJournal, journalKeptMs } = this.#options;
    let observed: LeaseObservation | undefined;
    let comparedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        const askedAt = clock.now();
        const view = await ledger.readSender();
        // A ledger that came back older, or empty, concerns not only the present holder of the lease.
        const mustCompare = !isLater(view, observed?.view) || askedAt - comparedAt >= COMPARE_EVERY_MS;
        observed = {
          view,
          since: observed !== undefined && isSameLease(observed.view.lease, view.lease) ? observed.since : clock.now(),
        };
        const isFree = view.lease?.released === true || askedAt - observed.since >= leaseMs;
        if (mustCompare || isFree) {
          comparedAt = askedAt;
          if ((await this.#options.audit.findMismatch()) !== undefined) {
            observed = undefined;
            await clock.sleep(COMPARE_AGAIN_MS, signal);
          } else if (isFree) {
            const forgetBefore = clock.wallNow() - journalKeptMs;
            const epoch = await ledger.acquireLease(owner, view, describeJournal(), forgetBefore);
            if (epoch !== undefined) return await this.#begin({ owner, epoch }, view);
            observed = undefined;
          }
        }
      } catch (error) {
        // The holder has no heartbeat while Redis is unavailable either, so what was observed so far proves nothing.
        observed = undefined;
        if (error instanceof UnsupportedFormatError) this.#options.onUnsupported(error.message);
        this.#options.logger.debug({ error: (error as Error).message }, 'cannot watch the lease');
      }
      await clock.sleep(this.#watchEveryMs, signal);
    }
    return undefined;
  }

  get #watchEveryMs(): number {
    return Math.min(HEARTBEAT_EVERY_MS, this.#options.leaseMs / 5);
  }

  async #begin(lease: Lease, { lease: before }: SenderView): Promise<HeldLease> {
    const { clock, ledger, logger } = this.#options;
    const lost = new AbortController();
    const stop = new AbortController();
    const wonAt = clock.now();
    // The heartbeat begins at once, in the quarantine too, or others would take over from a holder that only waits.
    const acknowledged = { heartbeat: 0 };
    void this.#keepAlive(lease, acknowledged, lost, stop.signal);
    try {
      const view = await ledger.readSender();
      const holdOffMs = this.#holdOffMs(view, before?.released === true);
      logger.info({ epoch: lease.epoch, holdOffMs, unanswered: view.awaitingAnswer }, 'acquired sender lease');
      return {
        lease,
        view,
        firstSendAt: wonAt + holdOffMs,
        heartbeat: () => acknowledged.heartbeat,
        lost: lost.signal,
        release: async () => {
          stop.abort();
          if (!lost.signal.aborted) await ledger.releaseLease(lease);
        },
        stopHeartbeat: () => {
          stop.abort();
        },
      };
    } catch (error) {
      stop.abort();
      throw error;
    }
  }

  #holdOffMs(view: SenderView, wasReleased: boolean): number {
    const { intervalMs, quarantineMs, awaitingAnswerMs, audit } = this.#options;
    const { awaitingAnswer, inFlightMs } = view;
    // A lease that was given back looks the same in a Redis that came back older. The sends since are in the journal of
    // their sender: where that may be another one, its worker needs the quarantine to object.
    const isHandedOver = wasReleased && audit.hasAllSends(view);
    return Math.max(intervalMs, isHandedOver ? 0 : quarantineMs, awaitingAnswer ? awaitingAnswerMs(inFlightMs) : 0);
  }

  async #keepAlive(
    lease: Lease,
    acknowledged: { heartbeat: number },
    lost: AbortController,
    stop: AbortSignal,
  ): Promise<void> {
    const { clock, ledger, logger } = this.#options;
    while (!stop.aborted) {
      // Not given back: others take over as from a process that died.
      if (this.#options.audit.refuseStalled()) {
        logger.error({ epoch: lease.epoch }, LOST_MESSAGES.stalled);
        lost.abort();
        return;
      }
      try {
        const heartbeat = await ledger.renewLease(lease);
        if (heartbeat === undefined || heartbeat <= acknowledged.heartbeat) {
          // A release by this very process ends the lease as well.
          if (!isAborted(stop))
            logger.warn({ epoch: lease.epoch }, LOST_MESSAGES[heartbeat === undefined ? 'taken' : 'older']);
          lost.abort();
          return;
        }
        acknowledged.heartbeat = heartbeat;
      } catch (error) {
        // Only Redis can tell whether the lease is still ours; begin-send checks it before every send.
        logger.debug({ error: (error as Error).message }, 'heartbeat failed');
      }
      await clock.sleep(this.#watchEveryMs, stop);
    }
  }
}

/** Whether a ledger can be the one that was observed before, some sends later. */
function isLater(view: SenderView, before: SenderView | undefined): boolean {
  if (before?.ledgerId !== view.ledgerId || view.sendCount < before.sendCount) return false;
  return view.sendCount > before.sendCount || view.last === before.last;
}
