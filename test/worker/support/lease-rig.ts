import { onAnyClock } from '../../../src/base/clock.js';
import type { BeginSend, KnownJournal, Lease } from '../../../src/ledger/sender-ledger.js';
import { LeaseKeeper, type HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import type { SenderRuntime } from '../../../src/worker/sender/sender-runtime.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { countLedgers, RigLedger } from '../../world/world-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import {
  GUARD_MS,
  hooked,
  IN_FLIGHT_MAX_MS,
  INTERVAL_MS,
  listeningLogger,
  makeRuntime,
  type SendRig,
} from './send-rig.js';

export const QUARANTINE_MS = 2_000;
export const holdOffMs = (inFlightMs: number): number => onAnyClock(GUARD_MS + inFlightMs) + INTERVAL_MS;
export const AWAITING_ANSWER_MS = holdOffMs(IN_FLIGHT_MAX_MS);
const MINE: KnownJournal = { ...JOURNAL, journalId: 'j-mine', dir: '/mine' };

type Begin = Partial<BeginSend> & { readonly hasResponse?: boolean };

export class LeaseRig {
  readonly clock = new ManualClock();
  readonly ledger = new RigLedger({ clock: this.clock, nextLedgerId: countLedgers() });
  readonly before: SendRig['before'] = {};
  readonly after: SendRig['after'] = {};
  readonly logged: string[] = [];
  readonly stop = new AbortController();
  readonly #acquired: HeldLease[] = [];
  /** How the ledger contradicts the journal, if it does. */
  mismatch: string | undefined;
  isStalled = false;
  readonly comparedAt: number[] = [];

  makeKeeper(settings: Partial<SenderRuntime['settings']> = {}): LeaseKeeper {
    const runtime = makeRuntime({
      clock: this.clock,
      senderLedger: hooked(this.ledger, this.before, this.after),
      settings: { quarantineMs: QUARANTINE_MS, ...settings },
      ...{ journal: new MemoryJournal(MINE.journalId), journalPlace: MINE, makeOwner: () => 'me' },
      logger: listeningLogger(this.logged),
    });
    const audit: ConstructorParameters<typeof LeaseKeeper>[1] = {
      refuseStalled: () => this.isStalled,
      hasAllSends: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
      findMismatch: async () => {
        this.comparedAt.push(this.clock.now());
        return Promise.resolve(this.mismatch);
      },
    };
    return new LeaseKeeper(runtime, audit, () => undefined);
  }

  async acquire(keeper = this.makeKeeper()): Promise<HeldLease> {
    const held = await this.clock.until(keeper.acquire(this.stop.signal));
    if (held === undefined) throw new Error('the lease was not acquired');
    this.#acquired.push(held);
    return held;
  }

  watch(keeper = this.makeKeeper()): { readonly held: HeldLease | undefined } {
    const result: { held: HeldLease | undefined } = { held: undefined };
    void keeper.acquire(this.stop.signal).then((held) => {
      result.held = held;
      if (held !== undefined) this.#acquired.push(held);
    });
    return result;
  }

  /** Lets another process take the lease as it is. */
  async another(owner = 'other', journal = MINE): Promise<Lease> {
    const { ledger } = this;
    return { owner, epoch: (await ledger.acquireLease(owner, await ledger.readSender(), journal, 0)) ?? 0 };
  }

  async begin(lease: Lease, { hasResponse = false, ...change }: Begin = {}): Promise<void> {
    const { ledger } = this;
    ledger.enqueue(aPayout('p'));
    const begun = { ...(await nextBegin(ledger, lease, 'p')), journal: MINE, ...change };
    await ledger.beginSend(begun);
    if (hasResponse) await ledger.finishSend(begun, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
  }

  async lease() {
    return (await this.ledger.readSender()).lease;
  }

  end(): void {
    this.stop.abort();
    for (const held of this.#acquired) held.stopHeartbeat();
  }
}
