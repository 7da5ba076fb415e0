import type { BeginSend, KnownJournal, Lease } from '../../../src/ledger/sender-ledger.js';
import { LeaseKeeper, type HeldLease, type LeaseKeeperOptions } from '../../../src/worker/sender/lease-keeper.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryLedger } from '../../doubles/ledger/memory-ledger.js';
import { countLedgers } from '../../doubles/ledger/memory-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { hooked, listeningLogger, type SendRig } from './send-rig.js';

export const LEASE_MS = 10_000;
export const INTERVAL_MS = 1_010;
export const QUARANTINE_MS = 2_000;
/** For how long a request may be on its way, as this process reckons. */
export const IN_FLIGHT_MS = 30_000;
export const UNANSWERED_MS = IN_FLIGHT_MS + 2_000;
export const DAY_MS = 24 * 60 * 60 * 1_000;
const MINE: KnownJournal = { ...JOURNAL, journalId: 'j-mine', dir: '/mine' };

/** Keepers of the lease on a clock, a ledger and a journal that a test has in its hand. */
export class LeaseRig {
  readonly clock = new ManualClock();
  readonly ledger = new MemoryLedger({ clock: this.clock, nextLedgerId: countLedgers() });
  /** What happens before and after a call of the ledger takes effect; may throw. */
  readonly before: SendRig['before'] = {};
  readonly after: SendRig['after'] = {};
  /** What was said in the log, as `level message`. */
  readonly said: string[] = [];
  /** What the journal objects to, if anything, and how often it was asked. */
  mismatch: string | undefined;
  comparisons = 0;
  /** Ends what waits for the lease. */
  stop = new AbortController();
  readonly won: HeldLease[] = [];

  makeKeeper(given: Partial<LeaseKeeperOptions> = {}): LeaseKeeper {
    return new LeaseKeeper({
      clock: this.clock,
      ledger: hooked(this.ledger, this.before, this.after),
      owner: 'me',
      leaseMs: LEASE_MS,
      quarantineMs: QUARANTINE_MS,
      intervalMs: INTERVAL_MS,
      describeJournal: () => ({ ...MINE, at: this.clock.wallNow() }),
      journalKeptMs: DAY_MS,
      awaitingAnswerMs: (inFlightMs) => Math.max(IN_FLIGHT_MS, inFlightMs) + 2_000,
      audit: {
        hasAllSends: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
        findMismatch: async () => {
          this.comparisons += 1;
          return Promise.resolve(this.mismatch);
        },
      },
      onUnsupported: () => undefined,
      logger: listeningLogger(this.said),
      ...given,
    });
  }

  /** Acquires, with all the time that it takes. */
  async acquire(keeper = this.makeKeeper()): Promise<HeldLease> {
    const held = await this.clock.until(keeper.acquire(this.stop.signal));
    if (held === undefined) throw new Error('the lease was not won');
    this.won.push(held);
    return held;
  }

  /** Lets another process take the lease as it is. */
  async another(owner = 'other', journal = MINE): Promise<Lease> {
    return { owner, epoch: (await this.ledger.acquireLease(owner, await this.ledger.readSender(), journal, 0)) ?? 0 };
  }

  /** Lets a holder begin a send, and finish it where an answer came. */
  async begin(lease: Lease, given: Partial<BeginSend> & { readonly isAnswered?: boolean } = {}): Promise<void> {
    const { isAnswered = false, ...change } = given;
    this.ledger.enqueue(aPayout('p'));
    const asked = { ...(await nextBegin(this.ledger, lease, 'p')), journal: MINE, ...change };
    await this.ledger.beginSend(asked);
    if (isAnswered) await this.ledger.finishSend(asked, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
  }

  /** Begins acquiring; the held lease is there once it is won. */
  watch(keeper = this.makeKeeper()): { held: HeldLease | undefined } {
    const result: { held: HeldLease | undefined } = { held: undefined };
    void keeper.acquire(this.stop.signal).then((held) => {
      result.held = held;
      if (held !== undefined) this.won.push(held);
    });
    return result;
  }

  close(): void {
    this.stop.abort();
    for (const held of this.won) held.stopHeartbeat();
  }
}
