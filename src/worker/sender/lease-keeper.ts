import { isAborted, type Clock } from '../../clock.js';
import { UnsupportedFormatError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { KnownJournal, Lease, SenderLedger, SenderView } from '../../ledger/sender-ledger.js';

export interface LeaseKeeperOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  /** Unique for every start of a process: a restarted one is another sender. */
  readonly owner: string;
  /** The journal that will witness the sends. */
  readonly describeJournal: () => KnownJournal;
  /** For how long files of a journal are kept, in ms: what was not used for as long has nothing to say any more. */
  readonly journalKeptMs: number;
  /** For how long the lease must stand still before it may be taken over, in ms. */
  readonly leaseMs: number;
  /** Silence after a take-over, before the first send, in ms. */
  readonly quarantineMs: number;
  /** Silence before the first send in any case, in ms. */
  readonly intervalMs: number;
  /**
   * For how long the request of an unanswered attempt may still be written and on its way, in ms.
   * @param inFlightMs - for how long it may be on its way, as its sender reckoned
   */
  readonly unansweredMs: (inFlightMs: number) => number;
  /**
   * Compares the ledger with the journal. A ledger that it objects to is not taken: doing so would raise its epoch
   * and hide that it is an older copy.
   * @returns why nothing may be sent from this ledger, or undefined
   */
  readonly findObjection: () => Promise<string | undefined>;
  /** Whether the journal of this process witnesses all sends, as far as anybody knows. */
  readonly witnessesAll: (view: SenderView) => boolean;
  /** Told that the ledger is of a format that this version does not know. */
  readonly onUnsupported: (reason: string) => void;
  readonly logger: Logger;
}

/** What was seen of the ledger, and since when its lease has stood still. */
interface LeaseObservation {
  readonly view: SenderView;
  readonly since: number;
}

/** The lease, held. */
export interface HeldLease {
  readonly lease: Lease;
  /** The ledger as it was when the lease was won. */
  readonly view: SenderView;
  /** The first send is allowed from then on, on the clock's scale. */
  readonly firstSendAt: number;
  /** The last sign of life that the ledger acknowledged. */
  readonly heartbeat: () => number;
  /** Aborted as soon as the ledger says that another process has the lease. */
  readonly lost: AbortSignal;
  /** Gives the lease back: only after the last answer. */
  release(): Promise<void>;
  /** Stops showing signs of life without giving it back. */
  abandon(): void;
}

/** How the lease was lost: it is another's, or the ledger came back as it was some signs of life ago. */
const LOST_WORDS = {
  taken: 'another process has taken the lease',
  older: 'the ledger came back older; giving up the lease',
} as const;
const BEAT_EVERY_MS = 1_000;
/** After an objection: comparing reads much of ledger and journal, and only an operator can end what they disagree about. */
const OBJECTION_LOOK_MS = 3_000;
/** A process that stands by compares ledger and journal this often, also where nothing seems to have changed. */
const COMPARE_EVERY_MS = 10_000;

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
    const { clock, ledger, owner, leaseMs, describeJournal, journalKeptMs } = this.#options;
    let seen: LeaseObservation | undefined;
    let comparedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        const askedAt = clock.now();
        const view = await ledger.readSender();
        // A ledger that came back older, or empty, is not only a matter for whoever has the lease now.
        const mustCompare = !isLater(view, seen?.view) || askedAt - comparedAt >= COMPARE_EVERY_MS;
        seen = { view, since: seen !== undefined && sameLease(seen.view, view) ? seen.since : clock.now() };
        const isFree = view.lease?.released === true || askedAt - seen.since >= leaseMs;
        if (mustCompare || isFree) {
          comparedAt = askedAt;
          if ((await this.#options.findObjection()) !== undefined) {
            seen = undefined;
            await clock.sleep(OBJECTION_LOOK_MS, signal);
          } else if (isFree) {
            const forgetBefore = clock.wallNow() - journalKeptMs;
            const epoch = await ledger.acquireLease(owner, view, describeJournal(), forgetBefore);
            if (epoch !== undefined) return await this.#begin({ owner, epoch }, view);
            seen = undefined;
          }
        }
      } catch (error) {
        // The holder cannot beat while Redis is unavailable either, so what was watched until now says nothing.
        seen = undefined;
        if (error instanceof UnsupportedFormatError) this.#options.onUnsupported(error.message);
        this.#options.logger.debug({ error: (error as Error).message }, 'cannot watch the lease');
      }
      await clock.sleep(this.#watchEveryMs, signal);
    }
    return undefined;
  }

  get #watchEveryMs(): number {
    return Math.min(BEAT_EVERY_MS, this.#options.leaseMs / 5);
  }

  async #begin(lease: Lease, { lease: before }: SenderView): Promise<HeldLease> {
    const { clock, ledger, logger } = this.#options;
    const lost = new AbortController();
    const stopBeating = new AbortController();
    const wonAt = clock.now();
    // Signs of life begin at once, in the quarantine too, or others would take over from a holder that only waits.
    const pulse = { beat: 0 };
    void this.#beat(lease, pulse, lost, stopBeating.signal);
    try {
      const view = await ledger.readSender();
      const holdOffMs = this.#holdOffMs(view, before?.released === true);
      logger.info({ epoch: lease.epoch, holdOffMs, unanswered: view.awaitingAnswer }, 'acquired sender lease');
      return {
        lease,
        view,
        firstSendAt: wonAt + holdOffMs,
        heartbeat: () => pulse.beat,
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

  #holdOffMs(view: SenderView, wasReleased: boolean): number {
    const { intervalMs, quarantineMs, unansweredMs, witnessesAll } = this.#options;
    const { awaitingAnswer, inFlightMs } = view;
    // A lease that was given back looks the same in a Redis that came back older. What was sent since, the journal of its
    // sender knows: where that may be another one, its worker needs the time to object.
    const isHandedOver = wasReleased && witnessesAll(view);
    return Math.max(intervalMs, isHandedOver ? 0 : quarantineMs, awaitingAnswer ? unansweredMs(inFlightMs) : 0);
  }

  async #beat(lease: Lease, pulse: { beat: number }, lost: AbortController, stop: AbortSignal): Promise<void> {
    const { clock, ledger, logger } = this.#options;
    while (!stop.aborted) {
      try {
        const beat = await ledger.renewLease(lease);
        if (beat === undefined || beat <= pulse.beat) {
          // A release by this very process ends the lease as well.
          if (!isAborted(stop)) logger.warn({ epoch: lease.epoch }, LOST_WORDS[beat === undefined ? 'taken' : 'older']);
          lost.abort();
          return;
        }
        pulse.beat = beat;
      } catch (error) {
        // Whether the lease is still ours, only Redis can say; begin-send asks it before every send.
        logger.debug({ error: (error as Error).message }, 'cannot show a sign of life');
      }
      await clock.sleep(this.#watchEveryMs, stop);
    }
  }
}

function sameLease({ lease: one }: SenderView, { lease: other }: SenderView): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.owner === other.owner &&
    one.epoch === other.epoch &&
    one.heartbeat === other.heartbeat &&
    one.released === other.released
  );
}

/** Whether a ledger can be the one that was seen before, some sends later. */
function isLater(view: SenderView, before: SenderView | undefined): boolean {
  if (before?.ledgerId !== view.ledgerId || view.sendCount < before.sendCount) return false;
  return view.sendCount > before.sendCount || view.last === before.last;
}
