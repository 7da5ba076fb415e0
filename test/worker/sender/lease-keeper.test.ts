import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import {
  DAY_MS,
  IN_FLIGHT_MS,
  INTERVAL_MS,
  LEASE_MS,
  QUARANTINE_MS,
  UNANSWERED_MS,
  LeaseRig,
} from '../support/lease-rig.js';

let rig: LeaseRig;
beforeEach(() => {
  rig = new LeaseRig();
});
afterEach(() => {
  rig.close();
});

describe('acquire', () => {
  it('takes a lease that was given back at once, and is quiet for an interval', async () => {
    await rig.ledger.releaseLease(await rig.another());
    const startedAt = rig.clock.now();
    const held = await rig.acquire();
    expect(rig.clock.now()).toBe(startedAt);
    expect(held.lease).toEqual({ owner: 'me', epoch: 2 });
    expect(held.firstSendAt).toBe(startedAt + INTERVAL_MS);
    expect(held.view.lease).toMatchObject({ owner: 'me', epoch: 2 });
    expect(rig.said).toEqual(['info acquired sender lease']);
  });

  it.each(['absent', 'standing still'])(
    'watches a lease that is %s for the lease time, and is quiet for the quarantine',
    async (kind) => {
      if (kind !== 'absent') await rig.another();
      const startedAt = rig.clock.now();
      const held = await rig.acquire();
      expect(rig.clock.now()).toBe(startedAt + LEASE_MS);
      expect(held.firstSendAt).toBe(rig.clock.now() + QUARANTINE_MS);
    },
  );

  it('is quiet for an interval at least', async () => {
    const held = await rig.acquire(rig.makeKeeper({ quarantineMs: 0 }));
    expect(held.firstSendAt).toBe(rig.clock.now() + INTERVAL_MS);
  });

  it('is quiet for an interval after one that gave it back and sent with the same journal', async () => {
    const lease = await rig.another();
    await rig.begin(lease, { isAnswered: true });
    await rig.ledger.releaseLease(lease);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + INTERVAL_MS);
  });

  it('is quiet for the quarantine after one that gave it back and sent with another journal', async () => {
    const lease = await rig.another('other', JOURNAL);
    await rig.begin(lease, { isAnswered: true, journal: JOURNAL });
    await rig.ledger.releaseLease(lease);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + QUARANTINE_MS);
  });

  it.each([true, false])(
    'is quiet until an unanswered request is on its way no more; given back: %s',
    async (givenBack) => {
      const lease = await rig.another();
      await rig.begin(lease);
      if (givenBack) await rig.ledger.releaseLease(lease);
      const held = await rig.acquire();
      expect(held.firstSendAt).toBe(rig.clock.now() + UNANSWERED_MS);
    },
  );

  it.each([
    ['its own, where that is longer', IN_FLIGHT_MS / 2, UNANSWERED_MS],
    ["its sender's, where that is longer", 2 * IN_FLIGHT_MS, UNANSWERED_MS + IN_FLIGHT_MS],
  ])('reckons how long an unanswered request may be on its way by %s', async (_, inFlightMs, holdOffMs) => {
    await rig.begin(await rig.another(), { inFlightMs });
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + holdOffMs);
  });

  it('makes its journal known, and forgets those that were not used for as long as files are kept', async () => {
    const now = rig.clock.wallNow();
    await rig.another('other', { ...JOURNAL, journalId: 'j-old', at: now - DAY_MS - 1 });
    await rig.another('other', { ...JOURNAL, journalId: 'j-new', at: now });
    const held = await rig.acquire();
    expect(held.view.journals.map(({ journalId }) => journalId)).toEqual(['j-mine', 'j-new']);
  });

  it('reckons the silence from before it asked what the ledger holds', async () => {
    await rig.ledger.releaseLease(await rig.another());
    let reads = 0;
    rig.after.readSender = async () => {
      reads += 1;
      if (reads === 2) await rig.clock.sleep(700);
    };
    const startedAt = rig.clock.now();
    expect((await rig.acquire()).firstSendAt).toBe(startedAt + INTERVAL_MS);
  });

  it('never takes a lease that beats, and takes it one lease time after the last beat was seen', async () => {
    const lease = await rig.another();
    const watching = rig.watch();
    for (let beats = 0; beats < 50; beats += 1) {
      await rig.ledger.renewLease(lease);
      await rig.clock.advance(LEASE_MS / 2);
    }
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(LEASE_MS / 2 - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(3_000);
    expect(watching.held?.lease.epoch).toBe(2);
  });

  it.each(['owner', 'epoch', 'beat', 'absence'])('counts a change of the %s as a sign of life', async (change) => {
    const lease = await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS - 500);
    const view = (await rig.ledger.readSender()).lease;
    if (view === undefined) throw new Error('no lease');
    const snapshot = rig.ledger.snapshot();
    if (change === 'owner') rig.ledger.restore({ ...snapshot, lease: { ...view, owner: 'somebody else' } });
    if (change === 'epoch') rig.ledger.restore({ ...snapshot, lease: { ...view, epoch: 7 } });
    if (change === 'beat') await rig.ledger.renewLease(lease);
    if (change === 'absence') rig.ledger.restore({ ...snapshot, lease: undefined });
    await rig.clock.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(3_000);
    expect(watching.held).toBeDefined();
  });

  it('reckons the standing still from when the view was there, not from when it was asked for', async () => {
    await rig.another();
    rig.after.readSender = async () => {
      delete rig.after.readSender;
      await rig.clock.sleep(5_000);
    };
    const startedAt = rig.clock.now();
    await rig.acquire();
    expect(rig.clock.now()).toBeGreaterThanOrEqual(startedAt + 5_000 + LEASE_MS);
  });

  it('does not count an answer that was long on its way as standing still', async () => {
    await rig.another();
    let reads = 0;
    rig.after.readSender = async () => {
      reads += 1;
      if (reads === 2) await rig.clock.sleep(2 * LEASE_MS);
      if (reads === 3) await rig.another('third');
    };
    const watching = rig.watch();
    await rig.clock.advance(2 * LEASE_MS + 3_000);
    expect(watching.held).toBeUndefined();
  });

  it('begins to watch again once Redis was unavailable, since nobody could beat meanwhile', async () => {
    await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS - 1_500);
    rig.before.readSender = () => {
      throw new Error('Redis is away');
    };
    await rig.clock.advance(1_000);
    delete rig.before.readSender;
    expect(rig.said).toContain('debug cannot watch the lease');
    await rig.clock.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(3_000);
    expect(watching.held).toBeDefined();
  });

  it('begins to watch again when another was quicker', async () => {
    await rig.another();
    rig.before.acquireLease = async () => {
      delete rig.before.acquireLease;
      await rig.another('quicker');
    };
    const startedAt = rig.clock.now();
    const held = await rig.acquire();
    expect(held.lease.epoch).toBe(3);
    expect(rig.clock.now()).toBeGreaterThanOrEqual(startedAt + 2 * LEASE_MS);
  });

  it('looks every second, or five times in a shorter lease time', async () => {
    let looks = 0;
    rig.before.readSender = () => void (looks += 1);
    rig.watch();
    await rig.clock.advance(4_999);
    expect(looks).toBe(5);
    rig.stop.abort();
    rig.stop = new AbortController();
    looks = 0;
    const lease = await rig.another();
    rig.before.readSender = async () => {
      looks += 1;
      await rig.ledger.renewLease(lease);
    };
    rig.watch(rig.makeKeeper({ leaseMs: 1_000 }));
    await rig.clock.advance(999);
    expect(looks).toBe(5);
  });

  it('ends without a lease when the signal is aborted, before or while it watches', async () => {
    expect(await rig.makeKeeper().acquire(AbortSignal.abort())).toBeUndefined();
    await rig.another();
    const acquiring = rig.makeKeeper().acquire(rig.stop.signal);
    await rig.clock.advance(3_000);
    rig.stop.abort();
    expect(await rig.clock.until(acquiring)).toBeUndefined();
    expect((await rig.ledger.readSender()).lease).toMatchObject({ owner: 'other', epoch: 1 });
  });

  it('stops beating when it cannot read what it has won', async () => {
    await rig.ledger.releaseLease(await rig.another());
    rig.before.acquireLease = () => {
      rig.before.readSender = () => {
        delete rig.before.readSender;
        throw new Error('Redis is away');
      };
    };
    const watching = rig.watch();
    await rig.clock.advance(500);
    const { lease } = await rig.ledger.readSender();
    await rig.clock.advance(5_000);
    expect((await rig.ledger.readSender()).lease).toEqual(lease);
    expect(watching.held).toBeUndefined();
  });
});
