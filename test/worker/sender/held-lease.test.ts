import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LEASE_MS, LeaseRig } from '../support/lease-rig.js';

let rig: LeaseRig;
beforeEach(() => {
  rig = new LeaseRig();
});
afterEach(() => {
  rig.end();
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
    expect((await rig.ledger.readSender()).lease).toMatchObject({ epoch: 1 });
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

  it.each<[string, () => Promise<void> | void]>([
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
        const { lease } = await rig.ledger.readSender();
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

describe('the held lease', () => {
  it('has a heartbeat at once and every second, in the quarantine too', async () => {
    await rig.acquire();
    await rig.clock.advance(0);
    expect((await rig.ledger.readSender()).lease?.heartbeat).toBe(1);
    await rig.clock.advance(5_500);
    expect((await rig.ledger.readSender()).lease?.heartbeat).toBe(6);
  });

  it('is lost as soon as a heartbeat finds another holder, who is not disturbed', async () => {
    const held = await rig.acquire();
    const other = await rig.another();
    await rig.clock.advance(1_500);
    expect(held.lost.aborted).toBe(true);
    expect(rig.logged).toContain('warn another process has taken the lease');
    await held.release();
    expect((await rig.ledger.readSender()).lease).toEqual({ ...other, heartbeat: 0, released: false });
  });

  it('is lost when the ledger comes back as it was some heartbeats ago', async () => {
    const held = await rig.acquire();
    await rig.clock.advance(3_000);
    const copy = rig.ledger.snapshot();
    await rig.clock.advance(3_000);
    expect(held.heartbeat()).toBe((await rig.ledger.readSender()).lease?.heartbeat);
    rig.ledger.restore(copy);
    await rig.clock.advance(1_000);
    expect(held.lost.aborted).toBe(true);
    expect(rig.logged).toContain('warn the ledger came back older; giving up the lease');
  });

  it('is given up, and left to die, once the disk of the journal hangs', async () => {
    const held = await rig.acquire();
    const before = await rig.ledger.readSender();
    rig.isStalled = true;
    await rig.clock.advance(1_000);
    expect(held.lost.aborted).toBe(true);
    rig.isStalled = false;
    await rig.clock.advance(LEASE_MS);
    expect((await rig.ledger.readSender()).lease).toEqual(before.lease);
    await held.release();
    expect((await rig.ledger.readSender()).lease).toMatchObject({ released: false });
  });

  it('calls the ledger no more once it is lost', async () => {
    const held = await rig.acquire();
    await rig.another();
    let heartbeats = 0;
    rig.before.renewLease = () => void (heartbeats += 1);
    let releases = 0;
    rig.before.releaseLease = () => void (releases += 1);
    await rig.clock.advance(5_000);
    await held.release();
    expect({ heartbeats, releases }).toEqual({ heartbeats: 1, releases: 0 });
  });

  it('is not lost while Redis is unavailable', async () => {
    const held = await rig.acquire();
    rig.before.renewLease = () => {
      throw new Error('Redis unavailable');
    };
    await rig.clock.advance(60_000);
    expect(held.lost.aborted).toBe(false);
    expect(rig.logged).toContain('debug heartbeat failed');
    delete rig.before.renewLease;
    const { lease } = await rig.ledger.readSender();
    await rig.clock.advance(1_500);
    expect((await rig.ledger.readSender()).lease?.heartbeat).toBeGreaterThan(lease?.heartbeat ?? 0);
  });

  it('is given back, and has no heartbeat any more', async () => {
    const held = await rig.acquire();
    await held.release();
    await rig.clock.advance(5_000);
    expect((await rig.ledger.readSender()).lease).toMatchObject({ owner: 'me', released: true });
    expect(held.lost.aborted).toBe(false);
    expect(rig.logged).toEqual(['info acquired sender lease']);
  });

  it('is not called lost by a heartbeat that was under way when it was given back', async () => {
    const held = await rig.acquire();
    rig.before.renewLease = async () => rig.clock.sleep(100);
    await rig.clock.advance(1_050);
    await held.release();
    await rig.clock.advance(1_000);
    expect(rig.logged).toEqual(['info acquired sender lease']);
  });

  it('without a heartbeat is not given back', async () => {
    const held = await rig.acquire();
    await rig.clock.advance(1_500);
    held.stopHeartbeat();
    const { lease } = await rig.ledger.readSender();
    await rig.clock.advance(5_000);
    expect((await rig.ledger.readSender()).lease).toEqual(lease);
    expect(lease?.released).toBe(false);
  });
});
