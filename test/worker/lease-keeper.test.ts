import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lease } from '../../src/ledger/sender-ledger.js';
import { LeaseKeeper, type HeldLease, type LeaseKeeperOptions } from '../../src/worker/lease-keeper.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { MemoryLedger } from '../simulation/memory-ledger.js';
import { countLedgers } from '../simulation/support/memory-rig.js';
import { ManualClock } from './support/manual-clock.js';
import { hooked, listeningLogger, type SendRig } from './support/send-rig.js';

const LEASE_MS = 10_000;
const INTERVAL_MS = 1_010;
const QUARANTINE_MS = 2_000;
const UNANSWERED_MS = 32_000;

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
    unansweredMs: UNANSWERED_MS,
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
async function another(owner = 'other'): Promise<Lease> {
  const { lease } = await ledger.readSender();
  return { owner, epoch: (await ledger.acquireLease(owner, lease)) ?? 0 };
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
    expect(said).toEqual(['info this process is the sender now']);
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

  it.each([true, false])(
    'is quiet until an unanswered request is on its way no more; given back: %s',
    async (givenBack) => {
      const lease = await another();
      ledger.enqueue(aPayout('p'));
      const { ledgerId } = await ledger.readSender();
      await ledger.beginSend({ lease, ledgerId, sends: 0, payoutId: 'p', attempt: 1 });
      if (givenBack) await ledger.releaseLease(lease);
      const held = await acquire();
      expect(held.firstSendAt).toBe(clock.now() + UNANSWERED_MS);
    },
  );

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
      await ledger.beatLease(lease);
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
    if (change === 'beat') await ledger.beatLease(lease);
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

  it('watches anew once Redis was away, since nobody could beat meanwhile', async () => {
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

  it('watches anew when another was quicker', async () => {
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
      await ledger.beatLease(lease);
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

  it('has the lease watched anew', async () => {
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

  it.each(['older', 'another'])(
    'is asked for again when the ledger is an %s one, also while somebody else has it',
    async (kind) => {
      const lease = await another();
      const older = ledger.snapshot();
      ledger.enqueue(aPayout('p'));
      const { ledgerId } = await ledger.readSender();
      await ledger.beginSend({ lease, ledgerId, sends: 0, payoutId: 'p', attempt: 1 });
      watch();
      await clock.advance(2_500);
      expect(objectionsAsked).toBe(1);
      if (kind === 'older') ledger.restore(older);
      else ledger.flush();
      await clock.advance(1_000);
      expect(objectionsAsked).toBe(2);
      await clock.advance(2_000);
      expect(objectionsAsked).toBe(2);
    },
  );
});

describe('another ledger that knows as many sends', () => {
  it('is held against the journal as well', async () => {
    await another();
    watch();
    await clock.advance(2_500);
    ledger.flush();
    await another();
    await clock.advance(1_000);
    expect(objectionsAsked).toBe(2);
  });
});

describe('the held lease', () => {
  it('beats at once and every second, in the quarantine too', async () => {
    await acquire();
    await clock.advance(0);
    expect((await ledger.readSender()).lease?.beat).toBe(1);
    await clock.advance(5_500);
    expect((await ledger.readSender()).lease?.beat).toBe(6);
  });

  it('is lost as soon as a beat finds another holder, who is not disturbed', async () => {
    const held = await acquire();
    const other = await another();
    await clock.advance(1_500);
    expect(held.lost.aborted).toBe(true);
    expect(said).toContain('warn another process has taken the lease');
    await held.release();
    expect((await ledger.readSender()).lease).toEqual({ ...other, beat: 0, released: false });
  });

  it('is asked nothing more once it is lost', async () => {
    await acquire();
    await another();
    let beats = 0;
    before.beatLease = () => void (beats += 1);
    let releases = 0;
    before.releaseLease = () => void (releases += 1);
    await clock.advance(5_000);
    await won[0]?.release();
    expect({ beats, releases }).toEqual({ beats: 1, releases: 0 });
  });

  it('is not lost while Redis is away', async () => {
    const held = await acquire();
    before.beatLease = () => {
      throw new Error('Redis is away');
    };
    await clock.advance(60_000);
    expect(held.lost.aborted).toBe(false);
    expect(said).toContain('debug cannot show a sign of life');
    delete before.beatLease;
    const { lease } = await ledger.readSender();
    await clock.advance(1_500);
    expect((await ledger.readSender()).lease?.beat).toBeGreaterThan(lease?.beat ?? 0);
  });

  it('is given back, and beats no more', async () => {
    const held = await acquire();
    await held.release();
    await clock.advance(5_000);
    expect((await ledger.readSender()).lease).toMatchObject({ owner: 'me', released: true });
    expect(held.lost.aborted).toBe(false);
    expect(said).toEqual(['info this process is the sender now']);
  });

  it('is not called lost by a beat that was under way when it was given back', async () => {
    const held = await acquire();
    before.beatLease = async () => clock.sleep(100);
    await clock.advance(1_050);
    await held.release();
    await clock.advance(1_000);
    expect(said).toEqual(['info this process is the sender now']);
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
