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

  it('holds off for an interval after one that gave it back and sent with the same journal', async () => {
    const lease = await rig.another();
    await rig.begin(lease, { hasResponse: true });
    await rig.ledger.releaseLease(lease);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + INTERVAL_MS);
  });

  it('holds off for the quarantine after one that gave it back and sent with another journal', async () => {
    const lease = await rig.another('other', JOURNAL);
    await rig.begin(lease, { hasResponse: true, journal: JOURNAL });
    await rig.ledger.releaseLease(lease);
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + QUARANTINE_MS);
  });

  it.each([true, false])(
    'holds off until a request without a response can arrive no more; given back: %s',
    async (givenBack) => {
      const lease = await rig.another();
      await rig.begin(lease);
      if (givenBack) await rig.ledger.releaseLease(lease);
      const held = await rig.acquire();
      expect(held.firstSendAt).toBe(rig.clock.now() + AWAITING_ANSWER_MS);
    },
  );

  it.each([
    ['its own, where that is longer', IN_FLIGHT_MS / 2, AWAITING_ANSWER_MS],
    ["its sender's, where that is longer", 2 * IN_FLIGHT_MS, holdOffMs(2 * IN_FLIGHT_MS)],
  ])('reckons how long a request without a response may be on its way by %s', async (_, inFlightMs, expectedMs) => {
    await rig.begin(await rig.another(), { inFlightMs });
    const held = await rig.acquire();
    expect(held.firstSendAt).toBe(rig.clock.now() + expectedMs);
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
