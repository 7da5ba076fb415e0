import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { BeginSend, KnownJournal, Lease } from '../../../src/ledger/sender-ledger.js';
import { LeaseKeeper, type HeldLease, type LeaseKeeperOptions } from '../../../src/worker/sender/lease-keeper.js';
import { JOURNAL, nextBegin, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryLedger } from '../../doubles/memory-ledger.js';
import { countLedgers } from '../../proofs/simulation/support/memory-rig.js';
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
let objection: string | undefined;
let objectionsAsked: number;
let stop: AbortController;
let won: HeldLease[];

beforeEach(() => {
  clock = new ManualClock();
  ledger = new MemoryLedger({ clock, nextLedgerId: countLedgers() });
  before = {};
  after = {};
  said = [];
  objection = undefined;
  objectionsAsked = 0;
  stop = new AbortController();
  won = [];
});

afterEach(() => {
  stop.abort();
  for (const held of won) held.abandon();
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
    unansweredMs: (inFlightMs) => Math.max(IN_FLIGHT_MS, inFlightMs) + 2_000,
    witnessesAll: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
    onUnsupported: () => undefined,
    findObjection: async () => {
      objectionsAsked += 1;
      return Promise.resolve(objection);
    },
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

describe('an objection of the journal', () => {
  it('is asked for at the first sight, and before the lease is taken, but not at every look', async () => {
    await acquire();
    expect(objectionsAsked).toBe(2);
  });

  it('keeps the lease from being taken, given back or not, as long as it stands', async () => {
    await ledger.releaseLease(await another());
    objection = 'an older copy';
    const watching = watch();
    await clock.advance(60_000);
    expect(watching.held).toBeUndefined();
    expect((await ledger.readSender()).lease).toMatchObject({ epoch: 1 });
    objection = undefined;
    await clock.advance(5_000);
    expect(watching.held).toBeDefined();
  });

  it('is looked for no more than every few seconds', async () => {
    objection = 'an older copy';
    watch();
    await clock.advance(39_000);
    expect(objectionsAsked).toBe(10);
  });

  it('has the lease watched again from the beginning', async () => {
    await another();
    const watching = watch();
    await clock.advance(LEASE_MS - 1_500);
    objection = 'an older copy';
    await clock.advance(3_000);
    objection = undefined;
    await clock.advance(LEASE_MS - 2_000);
    expect(watching.held).toBeUndefined();
    await clock.advance(6_000);
    expect(watching.held).toBeDefined();
  });

  it.each<[string, () => Promise<void> | void]>([
    ['comes back older', () => undefined],
    [
      'is flushed',
      () => {
        ledger.flush();
      },
    ],
    [
      'comes back older and has as many sends again',
      async () => {
        const { lease } = await ledger.readSender();
        await begin({ owner: 'other', epoch: lease?.epoch ?? 0 }, { token: 'another' });
      },
    ],
  ])('is asked for again when the ledger %s, also while somebody else has it', async (_, change) => {
    const lease = await another();
    const older = ledger.snapshot();
    await begin(lease);
    watch();
    await clock.advance(2_500);
    expect(objectionsAsked).toBe(1);
    ledger.restore(older);
    await change();
    await clock.advance(1_000);
    expect(objectionsAsked).toBe(2);
    await clock.advance(2_000);
    expect(objectionsAsked).toBe(2);
  });

  it('is not asked for again when the holder sends on', async () => {
    const lease = await another();
    watch();
    await clock.advance(2_500);
    await begin(lease);
    await clock.advance(1_500);
    expect(objectionsAsked).toBe(1);
  });

  it('is asked for again every ten seconds, also where nothing seems to have changed', async () => {
    const lease = await another();
    const startedAt = clock.now();
    const askedAt: number[] = [];
    watch(
      makeKeeper({
        witnessesAll: ({ sendCount, lastJournalId }) => sendCount === 0 || lastJournalId === MINE.journalId,
        onUnsupported: () => undefined,
        findObjection: async () => {
          askedAt.push(clock.now() - startedAt);
          return Promise.resolve(undefined);
        },
      }),
    );
    for (let second = 0; second < 25; second += 1) {
      await ledger.renewLease(lease);
      await clock.advance(1_000);
    }
    expect(askedAt).toEqual([0, 10_000, 20_000]);
  });
});

describe('the held lease', () => {
  it('beats at once and every second, in the quarantine too', async () => {
    await acquire();
    await clock.advance(0);
    expect((await ledger.readSender()).lease?.heartbeat).toBe(1);
    await clock.advance(5_500);
    expect((await ledger.readSender()).lease?.heartbeat).toBe(6);
  });

  it('is lost as soon as a beat finds another holder, who is not disturbed', async () => {
    const held = await acquire();
    const other = await another();
    await clock.advance(1_500);
    expect(held.lost.aborted).toBe(true);
    expect(said).toContain('warn another process has taken the lease');
    await held.release();
    expect((await ledger.readSender()).lease).toEqual({ ...other, heartbeat: 0, released: false });
  });

  it('is lost when the ledger comes back as it was some signs of life ago', async () => {
    const held = await acquire();
    await clock.advance(3_000);
    const copy = ledger.snapshot();
    await clock.advance(3_000);
    expect(held.heartbeat()).toBe((await ledger.readSender()).lease?.heartbeat);
    ledger.restore(copy);
    await clock.advance(1_000);
    expect(held.lost.aborted).toBe(true);
    expect(said).toContain('warn the ledger came back older; giving up the lease');
  });

  it('is asked nothing more once it is lost', async () => {
    await acquire();
    await another();
    let beats = 0;
    before.renewLease = () => void (beats += 1);
    let releases = 0;
    before.releaseLease = () => void (releases += 1);
    await clock.advance(5_000);
    await won[0]?.release();
    expect({ beats, releases }).toEqual({ beats: 1, releases: 0 });
  });

  it('is not lost while Redis is away', async () => {
    const held = await acquire();
    before.renewLease = () => {
      throw new Error('Redis is away');
    };
    await clock.advance(60_000);
    expect(held.lost.aborted).toBe(false);
    expect(said).toContain('debug cannot show a sign of life');
    delete before.renewLease;
    const { lease } = await ledger.readSender();
    await clock.advance(1_500);
    expect((await ledger.readSender()).lease?.heartbeat).toBeGreaterThan(lease?.heartbeat ?? 0);
  });

  it('is given back, and beats no more', async () => {
    const held = await acquire();
    await held.release();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toMatchObject({ owner: 'me', released: true });
    expect(held.lost.aborted).toBe(false);
    expect(said).toEqual(['info acquired sender lease']);
  });

  it('is not called lost by a beat that was under way when it was given back', async () => {
    const held = await acquire();
    before.renewLease = async () => clock.sleep(100);
    await clock.advance(1_050);
    await held.release();
    await clock.advance(1_000);
    expect(said).toEqual(['info acquired sender lease']);
  });

  it('that is abandoned beats no more, and is not given back', async () => {
    const held = await acquire();
    await clock.advance(1_500);
    held.abandon();
    const { lease } = await ledger.readSender();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toEqual(lease);
    expect(lease?.released).toBe(false);
  });
});
