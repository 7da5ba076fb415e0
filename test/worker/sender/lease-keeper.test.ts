import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { BeginSend, KnownJournal, Lease } from '../../../src/ledger/sender-ledger.js';
import { LeaseKeeper, type HeldLease, type LeaseKeeperOptions } from '../../../src/worker/sender/lease-keeper.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryLedger } from '../../doubles/ledger/memory-ledger.js';
import { countLedgers } from '../../doubles/ledger/memory-rig.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { hooked, listeningLogger, type SendRig } from '../support/send-rig.js';

const LEASE_MS = 10_000;
const INTERVAL_MS = 1_010;
const QUARANTINE_MS = 2_000;
/** For how long a request may be on its way, as this process reckons. */
const IN_FLIGHT_MS = 30_000;
const UNANSWERED_MS = IN_FLIGHT_MS + 2_000;
const DAY_MS = 24 * 60 * 60 * 1_000;
const MINE: KnownJournal = { ...JOURNAL, journalId: 'j-mine', dir: '/mine' };
let clock: ManualClock;
let ledger: MemoryLedger;
let before: SendRig['before'];
let after: SendRig['after'];
let said: string[];
/** What the journal objects to, if anything, and how often it was asked. */
let mismatch: string | undefined;
let stop: AbortController;
let won: HeldLease[];
beforeEach(() => {
  clock = new ManualClock();
  ledger = new MemoryLedger({ clock, nextLedgerId: countLedgers() });
  before = {};
  after = {};
  said = [];
  mismatch = undefined;
  stop = new AbortController();
  won = [];
});
afterEach(() => {
  stop.abort();
  for (const held of won) held.stopHeartbeat();
});
function makeKeeper(given: Partial<LeaseKeeperOptions> = {}): LeaseKeeper {
  return new LeaseKeeper({
    clock,
    ledger: hooked(ledger, before, after),
    owner: 'me',
    leaseMs: LEASE_MS,
    quarantineMs: QUARANTINE_MS,
    intervalMs: INTERVAL_MS,
    describeJournal: () => ({ ...MINE, at: clock.wallNow() }),
    journalKeptMs: DAY_MS,
    awaitingAnswerMs: (inFlightMs) => Math.max(IN_FLIGHT_MS, inFlightMs) + 2_000,
    audit: {
      hasAllSends: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
      findMismatch: async () => Promise.resolve(mismatch),
    },
    onUnsupported: () => undefined,
    logger: listeningLogger(said),
    ...given,
  });
}
/** Acquires, with all the time that it takes. */
async function acquire(keeper = makeKeeper()): Promise<HeldLease> {
  const held = await clock.until(keeper.acquire(stop.signal));
  if (held === undefined) throw new Error('the lease was not won');
  won.push(held);
  return held;
}
/** Lets another process take the lease as it is. */
async function another(owner = 'other', journal = MINE): Promise<Lease> {
  return { owner, epoch: (await ledger.acquireLease(owner, await ledger.readSender(), journal, 0)) ?? 0 };
}
/** Lets a holder begin a send, and finish it where an answer came. */
async function begin(lease: Lease, given: Partial<BeginSend> & { readonly isAnswered?: boolean } = {}): Promise<void> {
  const { isAnswered = false, ...change } = given;
  ledger.enqueue(aPayout('p'));
  const asked = { ...(await nextBegin(ledger, lease, 'p')), journal: MINE, ...change };
  await ledger.beginSend(asked);
  if (isAnswered) await ledger.finishSend(asked, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
}
/** Begins acquiring; the held lease is there once it is won. */
function watch(keeper = makeKeeper()): { held: HeldLease | undefined } {
  const result: { held: HeldLease | undefined } = { held: undefined };
  void keeper.acquire(stop.signal).then((held) => {
    result.held = held;
    if (held !== undefined) won.push(held);
  });
  return result;
}

describe('acquire', () => {
  it('takes a lease that was given back at once, and is quiet for an interval', async () => {
    await ledger.releaseLease(await another());
    const startedAt = clock.now();
    const held = await acquire();
    expect(clock.now()).toBe(startedAt);
    expect(held.lease).toEqual({ owner: 'me', epoch: 2 });
    expect(held.firstSendAt).toBe(startedAt + INTERVAL_MS);
    expect(held.view.lease).toMatchObject({ owner: 'me', epoch: 2 });
    expect(said).toEqual(['info acquired sender lease']);
  });

  it.each(['absent', 'standing still'])(
    'watches a lease that is %s for the lease time, and is quiet for the quarantine',
    async (kind) => {
      if (kind !== 'absent') await another();
      const startedAt = clock.now();
      const held = await acquire();
      expect(clock.now()).toBe(startedAt + LEASE_MS);
      expect(held.firstSendAt).toBe(clock.now() + QUARANTINE_MS);
    },
  );

  it('is quiet for an interval at least', async () => {
    const held = await acquire(makeKeeper({ quarantineMs: 0 }));
    expect(held.firstSendAt).toBe(clock.now() + INTERVAL_MS);
  });

  it('is quiet for an interval after one that gave it back and sent with the same journal', async () => {
    const lease = await another();
    await begin(lease, { isAnswered: true });
    await ledger.releaseLease(lease);
    const held = await acquire();
    expect(held.firstSendAt).toBe(clock.now() + INTERVAL_MS);
  });

  it('is quiet for the quarantine after one that gave it back and sent with another journal', async () => {
    const lease = await another('other', JOURNAL);
    await begin(lease, { isAnswered: true, journal: JOURNAL });
    await ledger.releaseLease(lease);
    const held = await acquire();
    expect(held.firstSendAt).toBe(clock.now() + QUARANTINE_MS);
  });

  it.each([true, false])(
    'is quiet until an unanswered request is on its way no more; given back: %s',
    async (givenBack) => {
      const lease = await another();
      await begin(lease);
      if (givenBack) await ledger.releaseLease(lease);
      const held = await acquire();
      expect(held.firstSendAt).toBe(clock.now() + UNANSWERED_MS);
    },
  );

  it.each([
    ['its own, where that is longer', IN_FLIGHT_MS / 2, UNANSWERED_MS],
    ["its sender's, where that is longer", 2 * IN_FLIGHT_MS, UNANSWERED_MS + IN_FLIGHT_MS],
  ])('reckons how long an unanswered request may be on its way by %s', async (_, inFlightMs, holdOffMs) => {
    await begin(await another(), { inFlightMs });
    const held = await acquire();
    expect(held.firstSendAt).toBe(clock.now() + holdOffMs);
  });

  it('makes its journal known, and forgets those that were not used for as long as files are kept', async () => {
    const now = clock.wallNow();
    await another('other', { ...JOURNAL, journalId: 'j-old', at: now - DAY_MS - 1 });
    await another('other', { ...JOURNAL, journalId: 'j-new', at: now });
    const held = await acquire();
    expect(held.view.journals.map(({ journalId }) => journalId)).toEqual(['j-mine', 'j-new']);
  });

  it('reckons the silence from before it asked what the ledger holds', async () => {
    await ledger.releaseLease(await another());
    let reads = 0;
    after.readSender = async () => {
      reads += 1;
      if (reads === 2) await clock.sleep(700);
    };
    const startedAt = clock.now();
    expect((await acquire()).firstSendAt).toBe(startedAt + INTERVAL_MS);
  });

  it('never takes a lease that beats, and takes it one lease time after the last beat was seen', async () => {
    const lease = await another();
    const watching = watch();
    for (let beats = 0; beats < 50; beats += 1) {
      await ledger.renewLease(lease);
      await clock.advance(LEASE_MS / 2);
    }
    expect(watching.held).toBeUndefined();
    await clock.advance(LEASE_MS / 2 - 1_000);
    expect(watching.held).toBeUndefined();
    await clock.advance(3_000);
    expect(watching.held?.lease.epoch).toBe(2);
  });

  it.each(['owner', 'epoch', 'beat', 'absence'])('counts a change of the %s as a sign of life', async (change) => {
    const lease = await another();
    const watching = watch();
    await clock.advance(LEASE_MS - 500);
    const view = (await ledger.readSender()).lease;
    if (view === undefined) throw new Error('no lease');
    const snapshot = ledger.snapshot();
    if (change === 'owner') ledger.restore({ ...snapshot, lease: { ...view, owner: 'somebody else' } });
    if (change === 'epoch') ledger.restore({ ...snapshot, lease: { ...view, epoch: 7 } });
    if (change === 'beat') await ledger.renewLease(lease);
    if (change === 'absence') ledger.restore({ ...snapshot, lease: undefined });
    await clock.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await clock.advance(3_000);
    expect(watching.held).toBeDefined();
  });

  it('reckons the standing still from when the view was there, not from when it was asked for', async () => {
    await another();
    after.readSender = async () => {
      delete after.readSender;
      await clock.sleep(5_000);
    };
    const startedAt = clock.now();
    await acquire();
    expect(clock.now()).toBeGreaterThanOrEqual(startedAt + 5_000 + LEASE_MS);
  });

  it('does not count an answer that was long on its way as standing still', async () => {
    await another();
    let reads = 0;
    after.readSender = async () => {
      reads += 1;
      if (reads === 2) await clock.sleep(2 * LEASE_MS);
      if (reads === 3) await another('third');
    };
    const watching = watch();
    await clock.advance(2 * LEASE_MS + 3_000);
    expect(watching.held).toBeUndefined();
  });

  it('begins to watch again once Redis was unavailable, since nobody could beat meanwhile', async () => {
    await another();
    const watching = watch();
    await clock.advance(LEASE_MS - 1_500);
    before.readSender = () => {
      throw new Error('Redis is away');
    };
    await clock.advance(1_000);
    delete before.readSender;
    expect(said).toContain('debug cannot watch the lease');
    await clock.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await clock.advance(3_000);
    expect(watching.held).toBeDefined();
  });

  it('begins to watch again when another was quicker', async () => {
    await another();
    before.acquireLease = async () => {
      delete before.acquireLease;
      await another('quicker');
    };
    const startedAt = clock.now();
    const held = await acquire();
    expect(held.lease.epoch).toBe(3);
    expect(clock.now()).toBeGreaterThanOrEqual(startedAt + 2 * LEASE_MS);
  });

  it('looks every second, or five times in a shorter lease time', async () => {
    let looks = 0;
    before.readSender = () => void (looks += 1);
    watch();
    await clock.advance(4_999);
    expect(looks).toBe(5);
    stop.abort();
    stop = new AbortController();
    looks = 0;
    const lease = await another();
    before.readSender = async () => {
      looks += 1;
      await ledger.renewLease(lease);
    };
    watch(makeKeeper({ leaseMs: 1_000 }));
    await clock.advance(999);
    expect(looks).toBe(5);
  });

  it('ends without a lease when the signal is aborted, before or while it watches', async () => {
    expect(await makeKeeper().acquire(AbortSignal.abort())).toBeUndefined();
    await another();
    const acquiring = makeKeeper().acquire(stop.signal);
    await clock.advance(3_000);
    stop.abort();
    expect(await clock.until(acquiring)).toBeUndefined();
    expect((await ledger.readSender()).lease).toMatchObject({ owner: 'other', epoch: 1 });
  });

  it('stops beating when it cannot read what it has won', async () => {
    await ledger.releaseLease(await another());
    before.acquireLease = () => {
      before.readSender = () => {
        delete before.readSender;
        throw new Error('Redis is away');
      };
    };
    const watching = watch();
    await clock.advance(500);
    const { lease } = await ledger.readSender();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toEqual(lease);
    expect(watching.held).toBeUndefined();
  });
});
