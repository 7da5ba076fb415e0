import { isAborted, onAnyClock } from '../../base/clock.js';
import { UnsupportedFormatError } from '../../base/errors.js';
import { UNKNOWN_IN_FLIGHT_MS } from '../../base/settings.js';
import { describeJournal } from '../../journal/send-journal.js';
import { isSameLease, type Lease, type LedgerGlance, type SenderView } from '../../ledger/sender-ledger.js';
import type { JournalAudit } from './journal-audit.js';
import type { SenderRuntime } from './sender-runtime.js';

/** The ledger as read, and since when its lease has shown no heartbeat. */
interface LeaseObservation {
  readonly view: SenderView;
  readonly since: number;
}

export interface HeldLease {
  readonly lease: Lease;
  readonly view: SenderView;
  /** On the clock's scale, like the other times. A request of an earlier sender may hold the first send up for longer. */
  readonly firstSendAt: number;
  /** Until when such a request may arrive. It falls once its sender tells that it has reset it. */
  readonly arrivesUntil: () => number;
  /** The last one that the ledger acknowledged. */
  readonly heartbeat: () => number;
  /** What that one saw of the ledger; undefined before the first. */
  readonly glance: () => LedgerGlance | undefined;
  /** Aborted by the next one. */
  readonly nextHeartbeat: () => AbortSignal;
  /** From then on another process may be the sender, on the clock's scale; a heartbeat moves it. */
  readonly heldUntil: () => number;
  /** Whether this process, or its machine, stood still for the lease time. The lease is lost then. */
  readonly stoodStill: () => boolean;
  /**
   * Aborted if another process has the lease or may have had it, or the journal's disk hangs: a process with another
   * disk then takes over.
   */
  readonly lost: AbortSignal;
  /** Call it only after the last response. */
  release(): Promise<void>;
  stopHeartbeat(): void;
}

/** What heartbeats brought. */
interface Acknowledged {
  heartbeat: number;
  glance: LedgerGlance | undefined;
  heldUntil: number;
  arrivesUntil: number;
  next: AbortController;
}

type Acquired = Readonly<{ acquiredFrom: number; lost: AbortController; stoodStill: () => boolean }>;

const LOST_MESSAGES = {
  taken: 'another process has taken the lease',
  older: 'the ledger came back older; giving up the lease',
  stalled: 'the disk of the send journal does not answer; giving up the lease',
  stoodStill: 'this process or its machine stood still, so another may have sent meanwhile; giving up the lease',
} as const;
/** One more command a second for each account would tell others of nothing sooner than they act on it. */
const HEARTBEAT_EVERY_MS = 2_000;
/** A heartbeat without a reply takes no longer, on a process that runs. */
const HEARTBEAT_TAKES_MS = 6_000;
/** Comparing reads much, and only an operator can resolve a mismatch. */
const COMPARE_AGAIN_MS = 3_000;
/** A standby process compares ledger and journal this often, even without a visible change. */
const COMPARE_EVERY_MS = 10_000;

/**
 * Gets and keeps the right to send for an account.
 * A lease is taken over only after this process has seen no heartbeat for the lease time, on its own monotonic clock.
 * An absent lease is treated the same: the key may be lost while its holder lives.
 * Key expiry and the clock of Redis are not used, because they jump.
 */
export class LeaseKeeper {
  readonly #runtime: SenderRuntime;
  readonly #audit: Pick<JournalAudit, 'findMismatch' | 'hasAllSends' | 'refuseStalled'>;
  readonly #onUnsupported: (reason: string) => void;

  /** @param audit - a ledger that contradicts the journal gets no new epoch, which would hide that it is an older copy */
  constructor(
    runtime: SenderRuntime,
    audit: Pick<JournalAudit, 'findMismatch' | 'hasAllSends' | 'refuseStalled'>,
    onUnsupported: (reason: string) => void,
  ) {
    this.#runtime = runtime;
    this.#audit = audit;
    this.#onUnsupported = onUnsupported;
  }

  /** @returns undefined if the signal was aborted first */
  async acquire(signal: AbortSignal): Promise<HeldLease | undefined> {
    const { clock, senderLedger, settings, logger } = this.#runtime;
    const owner = this.#runtime.makeOwner();
    let observed: LeaseObservation | undefined;
    let comparedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        const askedAt = clock.now();
        const view = await senderLedger.readSender();
        // A ledger that came back older, or empty, concerns standby processes too.
        const mustCompare = !isLater(view, observed?.view) || askedAt - comparedAt >= COMPARE_EVERY_MS;
        observed = {
          view,
          since: observed !== undefined && isSameLease(observed.view.lease, view.lease) ? observed.since : clock.now(),
        };
        const isFree = view.lease?.released === true || askedAt - observed.since >= settings.leaseMs;
        if (mustCompare || isFree) {
          comparedAt = askedAt;
          if ((await this.#audit.findMismatch()) !== undefined) {
            observed = undefined;
            await clock.sleep(COMPARE_AGAIN_MS, signal);
          } else if (isFree) {
            const held = await this.#takeOver(owner, view);
            if (held !== undefined) return held;
            observed = undefined;
          }
        }
      } catch (error) {
        // The holder cannot reach an unavailable Redis either, so the silence so far proves nothing.
        observed = undefined;
        if (error instanceof UnsupportedFormatError) this.#onUnsupported(error.message);
        logger.debug({ error: (error as Error).message }, 'cannot watch the lease');
      }
      await clock.sleep(this.#lookEveryMs, signal);
    }
    return undefined;
  }

  get #lookEveryMs(): number {
    return Math.min(HEARTBEAT_EVERY_MS, this.#runtime.settings.leaseMs / 5);
  }

  async #takeOver(owner: string, view: SenderView): Promise<HeldLease | undefined> {
    const { clock, senderLedger, journal, journalLocation, journalKeptMs, onlyWatches = false } = this.#runtime;
    if (onlyWatches) return undefined;
    const forgetBefore = clock.wallNow() - journalKeptMs;
    const own = describeJournal(journal, journalLocation, clock.wallNow());
    const lost = new AbortController();
    const stoodStill = this.#watchStandstill(lost);
    const acquiredFrom = clock.now();
    const epoch = await senderLedger.acquireLease(owner, view, own, forgetBefore);
    return epoch === undefined ? undefined : this.#begin({ owner, epoch }, view, { acquiredFrom, lost, stoodStill });
  }

  async #begin(lease: Lease, { lease: before }: SenderView, acquired: Acquired): Promise<HeldLease> {
    const { acquiredFrom, lost, stoodStill } = acquired;
    const { clock, senderLedger, settings, logger } = this.#runtime;
    const stop = new AbortController();
    const wonAt = clock.now();
    // The heartbeat covers the quarantine: others would otherwise take over from a holder that only waits.
    const acknowledged: Acknowledged = {
      ...{ heartbeat: 0, glance: undefined, next: new AbortController() },
      ...{ heldUntil: acquiredFrom + settings.leaseMs, arrivesUntil: Infinity },
    };
    void this.#keepAlive(lease, acknowledged, acquired, stop.signal);
    try {
      const view = await senderLedger.readSender();
      const holdOffMs = this.#holdOffMs(view, before?.released === true);
      const { awaitingAnswer, inFlightMs = UNKNOWN_IN_FLIGHT_MS } = view;
      const arrivesUntil = awaitingAnswer ? wonAt + onAnyClock(inFlightMs) : Number.NEGATIVE_INFINITY;
      const firstSendMs = Math.max(holdOffMs, arrivesUntil - wonAt);
      logger.info({ epoch: lease.epoch, holdOffMs: firstSendMs, unanswered: awaitingAnswer }, 'acquired sender lease');
      return {
        lease,
        view,
        firstSendAt: wonAt + holdOffMs,
        arrivesUntil: () => Math.min(arrivesUntil, acknowledged.arrivesUntil),
        heartbeat: () => acknowledged.heartbeat,
        glance: () => acknowledged.glance,
        nextHeartbeat: () => acknowledged.next.signal,
        heldUntil: () => acknowledged.heldUntil,
        stoodStill,
        lost: lost.signal,
        release: async () => {
          stop.abort();
          if (!lost.signal.aborted) await senderLedger.releaseLease(lease);
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
    const { settings } = this.#runtime;
    const { intervalMs, quarantineMs } = settings;
    // A Redis that came back older may show an old release. The worker whose journal has the sends since then needs the
    // quarantine to object.
    const isHandedOver = wasReleased && this.#audit.hasAllSends(view);
    return Math.max(intervalMs, isHandedOver ? 0 : quarantineMs);
  }

  /**
   * Another host may have taken the lease and sent while this process stood still. A Redis that then comes back older
   * may give the lease back to this process, which must not go on: it takes the lease like any other.
   * @returns to be called at least every `HEARTBEAT_TAKES_MS`
   */
  #watchStandstill(lost: AbortController): () => boolean {
    const { machineUptime, settings, logger } = this.#runtime;
    const limitMs = Math.max(settings.leaseMs, HEARTBEAT_TAKES_MS);
    let aliveAt = machineUptime();
    return () => {
      const now = machineUptime();
      if (now - aliveAt < limitMs) aliveAt = now;
      else if (!lost.signal.aborted) {
        logger.warn({ stoodStillMs: now - aliveAt }, LOST_MESSAGES.stoodStill);
        lost.abort();
      }
      return now !== aliveAt;
    };
  }

  async #keepAlive(
    lease: Lease,
    acknowledged: Acknowledged,
    { lost, stoodStill }: Acquired,
    stop: AbortSignal,
  ): Promise<void> {
    const { clock, senderLedger, settings, logger } = this.#runtime;
    while (!stop.aborted && !stoodStill()) {
      let againMs = this.#lookEveryMs;
      // Not given back: others take over as from a process that died.
      if (this.#audit.refuseStalled()) {
        logger.error({ epoch: lease.epoch }, LOST_MESSAGES.stalled);
        lost.abort();
        return;
      }
      try {
        const askedAt = clock.now();
        const renewal = await senderLedger.renewLease(lease);
        if (renewal === undefined || renewal.heartbeat <= acknowledged.heartbeat) {
          // This process's own release ends the lease too.
          if (!isAborted(stop))
            logger.warn({ epoch: lease.epoch }, LOST_MESSAGES[renewal === undefined ? 'taken' : 'older']);
          lost.abort();
          return;
        }
        acknowledged.heartbeat = renewal.heartbeat;
        acknowledged.glance = renewal.glance;
        // Each reply is true from its moment on: the earliest counts.
        const arrivesUntil = clock.now() + onAnyClock(renewal.arrivesForMs);
        acknowledged.arrivesUntil = Math.min(acknowledged.arrivesUntil, arrivesUntil);
        acknowledged.heldUntil = renewal.isObjectedTo ? askedAt : askedAt + settings.leaseMs;
        acknowledged.next.abort();
        acknowledged.next = new AbortController();
      } catch (error) {
        // begin-send checks the lease before every send. The lease time runs on, so the next try comes sooner.
        againMs /= 2;
        logger.debug({ error: (error as Error).message }, 'heartbeat failed');
      }
      if (stoodStill()) return;
      await clock.sleep(againMs, stop);
    }
  }
}

/** Whether a ledger can be the one that was observed before, some sends later. */
function isLater(view: SenderView, before: SenderView | undefined): boolean {
  if (before?.ledgerId !== view.ledgerId || view.sendCount < before.sendCount) return false;
  return view.sendCount > before.sendCount || view.last === before.last;
}
