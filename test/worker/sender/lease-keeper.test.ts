import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import {
  AWAITING_ANSWER_MS,
  holdOffMs,
  IN_FLIGHT_MS,
  INTERVAL_MS,
  JOURNAL_KEPT_MS,
  LEASE_MS,
  QUARANTINE_MS,
  LeaseRig,
} from '../support/lease-rig.js';
import { throwing } from '../support/send-rig.js';

let rig: LeaseRig;
beforeEach(() => {
  rig = new LeaseRig();
});
afterEach(() => {
  rig.end();
});

describe('acquire', () => {
  it('takes a lease that was given back at once, and holds off for an interval', async () => {
    await rig.ledger.releaseLease(await rig.another());
    const startedAt = rig.clock.now();
    const held = await rig.acquire();
    expect(rig.clock.now()).toBe(startedAt);
    expect(held.lease).toEqual({ owner: 'me', epoch: 2 });
    expect(held.firstSendAt).toBe(startedAt + INTERVAL_MS);
    expect(held.view.lease).toMatchObject({ owner: 'me', epoch: 2 });
    expect(rig.logged).toEqual(['info acquired sender lease']);
  });

  it.each(['absent', 'standing still'])(
    'watches a lease that is %s for the lease time, and holds off for the quarantine',
    async (kind) => {
      if (kind !== 'absent') await rig.another();
      const startedAt = rig.clock.now();
      const held = await rig.acquire();
      expect(rig.clock.now()).toBe(startedAt + LEASE_MS);
      expect(held.firstSendAt).toBe(rig.clock.now() + QUARANTINE_MS);
    },
  );

  it('holds off for an interval at least', async () => {
    const held = await rig.acquire(rig.makeKeeper({ quarantineMs: 0 }));
    expect(held.firstSendAt).toBe(rig.clock.now() + INTERVAL_MS);
  });

  it.each([
    ['an interval after one that gave it back and sent with the same journal', 'j-mine', INTERVAL_MS],
    ['the quarantine after one that gave it back and sent with another journal', 'j-other', QUARANTINE_MS],
  ])('holds off for %s', async (_, journalId, forMs) => {
    const journal = { ...JOURNAL, journalId };
    const lease = await rig.another('other', journal);
    await rig.begin(lease, { hasResponse: true, journal });
    await rig.ledger.releaseLease(lease);
    expect((await rig.acquire()).firstSendAt).toBe(rig.clock.now() + forMs);
  });

  it.each([
    ['given back', IN_FLIGHT_MS / 2, AWAITING_ANSWER_MS],
    ['standing still; by its own time, where that is longer', IN_FLIGHT_MS / 2, AWAITING_ANSWER_MS],
    ["standing still; by its sender's time, where that is longer", 2 * IN_FLIGHT_MS, holdOffMs(2 * IN_FLIGHT_MS)],
  ])('holds off until a request without a response can arrive no more: %s', async (how, inFlightMs, forMs) => {
    const lease = await rig.another();
    await rig.begin(lease, { inFlightMs });
    if (how === 'given back') await rig.ledger.releaseLease(lease);
    expect((await rig.acquire()).firstSendAt).toBe(rig.clock.now() + forMs);
  });

  it('holds off for a send whose request the ledger remembers only as the lease is taken: its record of the sender is gone', async () => {
    await rig.begin(await rig.another());
    rig.ledger.loseSender();
    expect((await rig.ledger.readSender()).awaitingAnswer).toBe(false);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + AWAITING_ANSWER_MS);
  });

  it('counts the hold-off from when it has the lease, however long that took', async () => {
    await rig.ledger.releaseLease(await rig.another());
    rig.before.acquireLease = async () => rig.clock.sleep(700);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + INTERVAL_MS);
  });

  it('makes its journal known, and forgets those that were not used for as long as files are kept', async () => {
    const now = rig.clock.wallNow();
    await rig.another('other', { ...JOURNAL, journalId: 'j-old', at: now - JOURNAL_KEPT_MS - 1 });
    await rig.another('other', { ...JOURNAL, journalId: 'j-new', at: now });
    const held = await rig.acquire();
    expect(held.view.journals.map(({ journalId }) => journalId)).toEqual(['j-mine', 'j-new']);
  });

  it('counts the hold-off from before it asked what the ledger holds', async () => {
    await rig.ledger.releaseLease(await rig.another());
    let reads = 0;
    rig.after.readSender = async () => {
      reads += 1;
      if (reads === 2) await rig.clock.sleep(700);
    };
    const startedAt = rig.clock.now();
    expect((await rig.acquire()).firstSendAt).toBe(startedAt + INTERVAL_MS);
  });
});

it('the held lease has a heartbeat at once and every second, in the quarantine too', async () => {
  await rig.acquire();
  await rig.clock.advance(0);
  expect((await rig.lease())?.heartbeat).toBe(1);
  await rig.clock.advance(5_500);
  expect((await rig.lease())?.heartbeat).toBe(6);
});

it('the held lease is lost as soon as a heartbeat finds another holder, who is not disturbed', async () => {
  const held = await rig.acquire();
  const other = await rig.another();
  await rig.clock.advance(1_500);
  expect(held.lost.aborted).toBe(true);
  expect(rig.logged).toContain('warn another process has taken the lease');
  await held.release();
  expect(await rig.lease()).toEqual({ ...other, heartbeat: 0, released: false });
});

it('the held lease is lost when the ledger comes back as it was some heartbeats ago', async () => {
  const held = await rig.acquire();
  await rig.clock.advance(3_000);
  const copy = rig.ledger.snapshot();
  await rig.clock.advance(3_000);
  expect(held.heartbeat()).toBe((await rig.lease())?.heartbeat);
  rig.ledger.restore(copy);
  await rig.clock.advance(1_000);
  expect(held.lost.aborted).toBe(true);
  expect(rig.logged).toContain('warn the ledger came back older; giving up the lease');
});

it('the held lease is given up, and left to die, once the disk of the journal hangs', async () => {
  const held = await rig.acquire();
  const before = await rig.ledger.readSender();
  rig.isStalled = true;
  await rig.clock.advance(1_000);
  expect(held.lost.aborted).toBe(true);
  rig.isStalled = false;
  await rig.clock.advance(LEASE_MS);
  expect(await rig.lease()).toEqual(before.lease);
  await held.release();
  expect(await rig.lease()).toMatchObject({ released: false });
});

it('the held lease calls the ledger no more once it is lost', async () => {
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

it('the held lease is not lost while Redis is unavailable', async () => {
  const held = await rig.acquire();
  rig.before.renewLease = throwing('Redis unavailable');
  await rig.clock.advance(60_000);
  expect(held.lost.aborted).toBe(false);
  expect(rig.logged).toContain('debug heartbeat failed');
  delete rig.before.renewLease;
  const lease = await rig.lease();
  await rig.clock.advance(1_500);
  expect((await rig.lease())?.heartbeat).toBeGreaterThan(lease?.heartbeat ?? 0);
});

it('the held lease is given back, and has no heartbeat any more', async () => {
  const held = await rig.acquire();
  await held.release();
  await rig.clock.advance(5_000);
  expect(await rig.lease()).toMatchObject({ owner: 'me', released: true });
  expect(held.lost.aborted).toBe(false);
  expect(rig.logged).toEqual(['info acquired sender lease']);
});

it('the held lease is not called lost by a heartbeat that was under way when it was given back', async () => {
  const held = await rig.acquire();
  rig.before.renewLease = async () => rig.clock.sleep(100);
  await rig.clock.advance(1_050);
  await held.release();
  await rig.clock.advance(1_000);
  expect(rig.logged).toEqual(['info acquired sender lease']);
});

it('the held lease without a heartbeat is not given back', async () => {
  const held = await rig.acquire();
  await rig.clock.advance(1_500);
  held.stopHeartbeat();
  const lease = await rig.lease();
  await rig.clock.advance(5_000);
  expect(await rig.lease()).toEqual(lease);
  expect(lease?.released).toBe(false);
});
