import { isAborted, type Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import type { Lease, LeaseView, SenderLedger, SenderView } from '../ledger/sender-ledger.js';

export interface LeaseKeeperOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  /** Unique for every start of a process: a restarted one is another sender. */
  readonly owner: string;
  /** For how long the lease must stand still before it may be taken over, in ms. */
  readonly leaseMs: number;
  /** Silence after a take-over, before the first send, in ms. */
  readonly quarantineMs: number;
  /** Silence before the first send in any case, in ms. */
  readonly intervalMs: number;
  /** For how long the request of an unanswered attempt may still be written (guard) and on its way, in ms. */
  readonly unansweredMs: number;
  /**
   * Holds the ledger against the journal. A ledger that it objects to is not taken: doing so would raise its epoch
   * and hide that it is an older copy.
   * @returns why nothing may be sent from this ledger, or undefined
   */
  readonly findObjection: () => Promise<string | undefined>;
  readonly logger: Logger;
}

/** What was seen of the ledger, and since when its lease has stood still. */
interface Sight {
  readonly lease: LeaseView | undefined;
  readonly ledgerId: string;
  readonly sends: number;
  readonly since: number;
}

/** The lease, held. */
export interface HeldLease {
  readonly lease: Lease;
  /** The ledger as it was when the lease was won. */
  readonly view: SenderView;
  /** The first send is allowed from then on, on the clock's scale. */
  readonly firstSendAt: number;
  /** Aborted as soon as the ledger says that another process has the lease. */
  readonly lost: AbortSignal;
  /** Gives the lease back: only after the last answer. */
  release(): Promise<void>;
  /** Stops showing signs of life without giving it back. */
  abandon(): void;
}

const BEAT_EVERY_MS = 1_000;
/** Holding the ledger against the journal reads much of both, and only a person can end what they disagree about. */
const OBJECTION_LOOK_MS = 3_000;

/**
 * Gets and keeps the right to send for an account.
 *
 * Another process's lease is taken over only after this one has itself watched it stand still for the lease time, on
 * its own monotonic clock. A lease that is absent is treated the same: the key may have been lost while its holder
 * lives. No expiry of a key and no clock of Redis is asked, because those jump.
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
    const { clock, ledger, owner } = this.#options;
    let seen: Sight | undefined;
    while (!signal.aborted) {
      try {
        const askedAt = clock.now();
        const { lease, ledgerId, sends } = await ledger.readSender();
        // A ledger that came back older, or empty, is not only a matter for whoever has the lease now.
        const isNewSight = seen === undefined || seen.ledgerId !== ledgerId || seen.sends > sends;
        const since = seen !== undefined && sameLease(seen.lease, lease) ? seen.since : clock.now();
        seen = { lease, ledgerId, sends, since };
        const free = lease?.released === true || askedAt - seen.since >= this.#options.leaseMs;
        if ((isNewSight || free) && (await this.#options.findObjection()) !== undefined) {
          seen = undefined;
          await clock.sleep(OBJECTION_LOOK_MS, signal);
        } else if (free) {
          const epoch = await ledger.acquireLease(owner, lease);
          if (epoch !== undefined) return await this.#begin({ owner, epoch }, lease?.released === true);
          seen = undefined;
        }
      } catch (error) {
        // The holder cannot beat while Redis is away either, so what was watched until now says nothing.
        seen = undefined;
        this.#options.logger.debug({ error: (error as Error).message }, 'cannot watch the lease');
      }
      await clock.sleep(this.#watchEveryMs, signal);
    }
    return undefined;
  }

  get #watchEveryMs(): number {
    return Math.min(BEAT_EVERY_MS, this.#options.leaseMs / 5);
  }

  async #begin(lease: Lease, wasReleased: boolean): Promise<HeldLease> {
    const { clock, ledger, logger, intervalMs, quarantineMs, unansweredMs } = this.#options;
    const lost = new AbortController();
    const stopBeating = new AbortController();
    const wonAt = clock.now();
    // Signs of life begin at once, in the quarantine too, or others would take over from a holder that only waits.
    void this.#beat(lease, lost, stopBeating.signal);
    try {
      const view = await ledger.readSender();
      const quietMs = Math.max(intervalMs, wasReleased ? 0 : quarantineMs, view.unanswered ? unansweredMs : 0);
      logger.info({ epoch: lease.epoch, quietMs, unanswered: view.unanswered }, 'this process is the sender now');
      return {
        lease,
        view,
        firstSendAt: wonAt + quietMs,
        lost: lost.signal,
        release: async () => {
          stopBeating.abort();
          if (!lost.signal.aborted) await ledger.releaseLease(lease);
        },
        abandon: () => {
          stopBeating.abort();
        },
      };
    } catch (error) {
      stopBeating.abort();
      throw error;
    }
  }

  async #beat(lease: Lease, lost: AbortController, stop: AbortSignal): Promise<void> {
    const { clock, ledger, logger } = this.#options;
    while (!stop.aborted) {
      try {
        if (!(await ledger.beatLease(lease))) {
          // A release by this very process ends the lease as well.
          if (!isAborted(stop)) logger.warn({ epoch: lease.epoch }, 'another process has taken the lease');
          lost.abort();
          return;
        }
      } catch (error) {
        // Whether the lease is still ours, only Redis can say; begin-send asks it before every send.
        logger.debug({ error: (error as Error).message }, 'cannot show a sign of life');
      }
      await clock.sleep(this.#watchEveryMs, stop);
    }
  }
}

function sameLease(one: LeaseView | undefined, other: LeaseView | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.owner === other.owner && one.epoch === other.epoch && one.beat === other.beat && one.released === other.released
  );
}
