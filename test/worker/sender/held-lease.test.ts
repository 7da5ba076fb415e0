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
const DAY_MS = 24 * 60 * 60 * 1_000;
const MINE: KnownJournal = { ...JOURNAL, journalId: 'j-mine', dir: '/mine' };
let clock: ManualClock;
let ledger: MemoryLedger;
let before: SendRig['before'];
let after: SendRig['after'];
let said: string[];
/** What the journal objects to, if anything, and how often it was asked. */
let mismatch: string | undefined;
let comparisons: number;
let stop: AbortController;
let won: HeldLease[];
beforeEach(() => {
  clock = new ManualClock();
  ledger = new MemoryLedger({ clock, nextLedgerId: countLedgers() });
  before = {};
  after = {};
  said = [];
  mismatch = undefined;
  comparisons = 0;
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
      findMismatch: async () => {
        comparisons += 1;
        return Promise.resolve(mismatch);
      },
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

describe('an objection of the journal', () => {
  it('is asked for at the first sight, and before the lease is taken, but not at every look', async () => {
    await acquire();
    expect(comparisons).toBe(2);
  });

  it('keeps the lease from being taken, given back or not, as long as it stands', async () => {
    await ledger.releaseLease(await another());
    mismatch = 'an older copy';
    const watching = watch();
    await clock.advance(60_000);
    expect(watching.held).toBeUndefined();
    expect((await ledger.readSender()).lease).toMatchObject({ epoch: 1 });
    mismatch = undefined;
    await clock.advance(5_000);
    expect(watching.held).toBeDefined();
  });

  it('is looked for no more than every few seconds', async () => {
    mismatch = 'an older copy';
    watch();
    await clock.advance(39_000);
    expect(comparisons).toBe(10);
  });

  it('has the lease watched again from the beginning', async () => {
    await another();
    const watching = watch();
    await clock.advance(LEASE_MS - 1_500);
    mismatch = 'an older copy';
    await clock.advance(3_000);
    mismatch = undefined;
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
    expect(comparisons).toBe(1);
    ledger.restore(older);
    await change();
    await clock.advance(1_000);
    expect(comparisons).toBe(2);
    await clock.advance(2_000);
    expect(comparisons).toBe(2);
  });

  it('is not asked for again when the holder sends on', async () => {
    const lease = await another();
    watch();
    await clock.advance(2_500);
    await begin(lease);
    await clock.advance(1_500);
    expect(comparisons).toBe(1);
  });

  it('is asked for again every ten seconds, also where nothing seems to have changed', async () => {
    const lease = await another();
    const startedAt = clock.now();
    const comparedAt: number[] = [];
    watch(
      makeKeeper({
        audit: {
          hasAllSends: () => true,
          findMismatch: async () => {
            comparedAt.push(clock.now() - startedAt);
            return Promise.resolve(undefined);
          },
        },
      }),
    );
    for (let second = 0; second < 25; second += 1) {
      await ledger.renewLease(lease);
      await clock.advance(1_000);
    }
    expect(comparedAt).toEqual([0, 10_000, 20_000]);
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
    expect(said).toContain('debug heartbeat failed');
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
    held.stopHeartbeat();
    const { lease } = await ledger.readSender();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toEqual(lease);
    expect(lease?.released).toBe(false);
  });
});
