import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LEASE_MS, LeaseRig } from '../support/lease-rig.js';
import { throwing } from '../support/send-rig.js';

let rig: LeaseRig;
beforeEach(() => {
  rig = new LeaseRig();
});
afterEach(() => {
  rig.end();
});

describe('watching a lease', () => {
  it('never takes a lease with a heartbeat, and takes it one lease time after the last heartbeat was seen', async () => {
    const lease = await rig.another();
    const watching = rig.watch();
    for (let heartbeats = 0; heartbeats < 50; heartbeats += 1) {
      await rig.ledger.renewLease(lease);
      await rig.clock.advance(LEASE_MS / 2);
    }
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(LEASE_MS / 2 - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(3_000);
    expect(watching.held?.lease.epoch).toBe(2);
  });

  it.each(['owner', 'epoch', 'heartbeat', 'absence'])('takes a change of the %s for a heartbeat', async (change) => {
    const lease = await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS - 500);
    const view = await rig.lease();
    if (view === undefined) throw new Error('no lease');
    const snapshot = rig.ledger.snapshot();
    if (change === 'owner') rig.ledger.restore({ ...snapshot, lease: { ...view, owner: 'someone else' } });
    if (change === 'epoch') rig.ledger.restore({ ...snapshot, lease: { ...view, epoch: 7 } });
    if (change === 'heartbeat') await rig.ledger.renewLease(lease);
    if (change === 'absence') rig.ledger.restore({ ...snapshot, lease: undefined });
    await rig.clock.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(3_000);
    expect(watching.held).toBeDefined();
  });

  it('takes no lease over because the wall clock jumped', async () => {
    await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS / 2);
    rig.clock.wallOffsetMs += 60 * 60 * 1_000;
    await rig.clock.advance(LEASE_MS / 2 - 2_000);
    expect(watching.held).toBeUndefined();
  });

  it('counts standing still from when the view was there, not from when it was asked for', async () => {
    await rig.another();
    rig.after.readSender = async () => {
      delete rig.after.readSender;
      await rig.clock.sleep(5_000);
    };
    const startedAt = rig.clock.now();
    await rig.acquire();
    expect(rig.clock.now()).toBeGreaterThanOrEqual(startedAt + 5_000 + LEASE_MS);
  });

  it('does not count a reply that was long on its way as standing still', async () => {
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

  it('begins to watch again once Redis was unavailable, since nobody could send a heartbeat meanwhile', async () => {
    await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS - 1_500);
    rig.before.readSender = throwing('Redis unavailable');
    await rig.clock.advance(1_000);
    delete rig.before.readSender;
    expect(rig.logged).toContain('debug cannot watch the lease');
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

  it.each([
    ['every second', LEASE_MS, 4_999],
    ['five times in a shorter lease time', 1_000, 999],
  ])('reads the lease %s', async (_, leaseMs, forMs) => {
    let reads = 0;
    const lease = await rig.another();
    rig.before.readSender = async () => {
      reads += 1;
      await rig.ledger.renewLease(lease);
    };
    rig.watch(rig.makeKeeper({ leaseMs }));
    await rig.clock.advance(forMs);
    expect(reads).toBe(5);
  });

  it('ends without a lease when the signal is aborted, before or while it watches', async () => {
    expect(await rig.makeKeeper().acquire(AbortSignal.abort())).toBeUndefined();
    await rig.another();
    const acquiring = rig.makeKeeper().acquire(rig.stop.signal);
    await rig.clock.advance(3_000);
    rig.stop.abort();
    expect(await rig.clock.until(acquiring)).toBeUndefined();
    expect(await rig.lease()).toMatchObject({ owner: 'other', epoch: 1 });
  });

  it('stops the heartbeat when it cannot read what it has acquired', async () => {
    await rig.ledger.releaseLease(await rig.another());
    rig.before.acquireLease = () => {
      rig.before.readSender = () => {
        delete rig.before.readSender;
        throw new Error('Redis unavailable');
      };
    };
    const watching = rig.watch();
    await rig.clock.advance(500);
    const lease = await rig.lease();
    await rig.clock.advance(5_000);
    expect(await rig.lease()).toEqual(lease);
    expect(watching.held).toBeUndefined();
  });
});

describe('an objection of the journal', () => {
  it('is looked for at the first observation, and before the lease is taken, but not at every check', async () => {
    await rig.acquire();
    expect(rig.comparedAt).toHaveLength(2);
  });

  it('keeps the lease from being taken, given back or not, as long as it stands', async () => {
    await rig.ledger.releaseLease(await rig.another());
    rig.mismatch = 'an older copy';
    const watching = rig.watch();
    await rig.clock.advance(60_000);
    expect(watching.held).toBeUndefined();
    expect(await rig.lease()).toMatchObject({ epoch: 1 });
    rig.mismatch = undefined;
    await rig.clock.advance(5_000);
    expect(watching.held).toBeDefined();
  });

  it('is looked for no more than every few seconds', async () => {
    rig.mismatch = 'an older copy';
    rig.watch();
    await rig.clock.advance(39_000);
    expect(rig.comparedAt).toHaveLength(10);
  });

  it('has the lease watched again from the beginning', async () => {
    await rig.another();
    const watching = rig.watch();
    await rig.clock.advance(LEASE_MS - 1_500);
    rig.mismatch = 'an older copy';
    await rig.clock.advance(3_000);
    rig.mismatch = undefined;
    await rig.clock.advance(LEASE_MS - 2_000);
    expect(watching.held).toBeUndefined();
    await rig.clock.advance(6_000);
    expect(watching.held).toBeDefined();
  });

  it.each<[string, () => unknown]>([
    ['comes back older', () => undefined],
    [
      'is flushed',
      () => {
        rig.ledger.flush();
      },
    ],
    [
      'comes back older and has as many sends again',
      async () => {
        const lease = await rig.lease();
        await rig.begin({ owner: 'other', epoch: lease?.epoch ?? 0 }, { token: 'another' });
      },
    ],
  ])('is looked for again when the ledger %s, also while someone else has it', async (_, change) => {
    const lease = await rig.another();
    const older = rig.ledger.snapshot();
    await rig.begin(lease);
    rig.watch();
    await rig.clock.advance(2_500);
    expect(rig.comparedAt).toHaveLength(1);
    rig.ledger.restore(older);
    await change();
    await rig.clock.advance(1_000);
    expect(rig.comparedAt).toHaveLength(2);
    await rig.clock.advance(2_000);
    expect(rig.comparedAt).toHaveLength(2);
  });

  it('is not looked for again when the holder sends on', async () => {
    const lease = await rig.another();
    rig.watch();
    await rig.clock.advance(2_500);
    await rig.begin(lease);
    await rig.clock.advance(1_500);
    expect(rig.comparedAt).toHaveLength(1);
  });

  it('is looked for again every ten seconds, also where nothing seems to have changed', async () => {
    const lease = await rig.another();
    const startedAt = rig.clock.now();
    const comparedAt: number[] = [];
    rig.watch(
      rig.makeKeeper(
        {},
        {
          hasAllSends: () => true,
          refuseStalled: () => false,
          findMismatch: async () => {
            comparedAt.push(rig.clock.now() - startedAt);
            return Promise.resolve(undefined);
          },
        },
      ),
    );
    for (let second = 0; second < 25; second += 1) {
      await rig.ledger.renewLease(lease);
      await rig.clock.advance(1_000);
    }
    expect(comparedAt).toEqual([0, 10_000, 20_000]);
  });
});
