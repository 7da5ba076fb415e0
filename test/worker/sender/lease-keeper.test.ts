import { beforeEach, expect, it } from '@jest/globals';
import { onAnyClock } from '../../../src/base/clock.js';
import { UNKNOWN_IN_FLIGHT_MS } from '../../../src/base/settings.js';
import { JOURNAL, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { LeaseRig, QUARANTINE_MS } from '../support/loop-rig.js';
import { DAY_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, LEASE_MS, throwing } from '../support/send-rig.js';

let rig: LeaseRig;
beforeEach(() => {
  rig = new LeaseRig();
});

const givenBack = async () => rig.ledger.releaseLease(await rig.another());
/** A heartbeat without a reply may take as long. */
const STANDSTILL_MS = Math.max(LEASE_MS, 6_000);
const ACQUIRED = 'info acquired sender lease';

it('acquire takes a lease that was given back at once, and waits an interval', async () => {
  await givenBack();
  const startedAt = rig.clock.now();
  const held = await rig.acquire();
  const lease = { owner: 'me', epoch: 2 };
  expect(rig.clock.now()).toBe(startedAt);
  expect(held).toMatchObject({ lease, firstSendAt: startedAt + INTERVAL_MS, view: { lease } });
  expect(rig.logged).toEqual([ACQUIRED]);
});

it.each([
  ['absent', QUARANTINE_MS, QUARANTINE_MS],
  ['standing still', QUARANTINE_MS, QUARANTINE_MS],
  ['absent', 0, INTERVAL_MS],
])(
  'acquire watches a lease that is %s for the lease time; a quarantine of %i ms is one of %i',
  async (kind, quarantineMs, heldOffMs) => {
    if (kind !== 'absent') await rig.another();
    const startedAt = rig.clock.now();
    const held = await rig.acquire(rig.makeKeeper({ quarantineMs }));
    expect([rig.clock.now(), held.firstSendAt]).toEqual([startedAt + LEASE_MS, rig.clock.now() + heldOffMs]);
  },
);

it.each([
  ['an interval after one that gave it back and sent with the same journal', 'j-mine', INTERVAL_MS],
  ['the quarantine after one that gave it back and sent with another journal', 'j-other', QUARANTINE_MS],
])('acquire holds off for %s', async (_, journalId, forMs) => {
  const journal = { ...JOURNAL, journalId };
  const lease = await rig.another('other', journal);
  await rig.begin(lease, { hasResponse: true, journal });
  await rig.ledger.releaseLease(lease);
  expect((await rig.acquire()).firstSendAt).toBe(rig.clock.now() + forMs);
});

it.each([
  ['given back', IN_FLIGHT_MAX_MS, onAnyClock(IN_FLIGHT_MAX_MS)],
  ['standing still', 2 * IN_FLIGHT_MAX_MS, onAnyClock(2 * IN_FLIGHT_MAX_MS)],
  // The ledger remembers the request only as the lease is taken.
  ['gone with the record of its sender', undefined, onAnyClock(UNKNOWN_IN_FLIGHT_MS)],
])('acquire holds off until a request without a response can arrive no more: %s', async (how, inFlightMs, forMs) => {
  const lease = await rig.another();
  await rig.begin(lease, inFlightMs === undefined ? {} : { inFlightMs });
  if (how === 'given back') await rig.ledger.releaseLease(lease);
  if (inFlightMs === undefined) rig.ledger.loseSender();
  expect((await rig.ledger.readSender()).awaitingAnswer).toBe(inFlightMs !== undefined);
  const held = await rig.acquire();
  expect(Math.max(held.firstSendAt, held.arrivesUntil())).toBe(rig.clock.now() + forMs);
});

it('a holder that waits for such a request hears from its sender that it was reset, or has its response', async () => {
  const lease = await rig.another();
  const attempt = await rig.begin(lease, { inFlightMs: 900_000 });
  const { arrivesUntil } = await rig.acquire();
  const startedAt = rig.clock.now();
  await rig.clock.advance(5_000);
  expect(arrivesUntil()).toBe(startedAt + onAnyClock(900_000));
  await rig.ledger.finishSend(attempt, { kind: 'unknown', reason: 'it was reset' }, NO_BREAKER, IN_FLIGHT_MAX_MS);
  await rig.clock.advance(2_000);
  const until = rig.clock.now() + onAnyClock(IN_FLIGHT_MAX_MS);
  expect(arrivesUntil()).toBeGreaterThan(until - 2_001);
  expect(arrivesUntil()).toBeLessThanOrEqual(until);
  await rig.ledger.finishSend(attempt, { kind: 'accepted', gatewayId: 'h' }, NO_BREAKER, 0);
  await rig.clock.advance(2_000);
  expect(arrivesUntil()).toBeLessThanOrEqual(rig.clock.now());
});

it('acquire counts the hold-off from when it has the lease', async () => {
  await givenBack();
  let wonAt = 0;
  rig.before.acquireLease = async () => {
    await rig.clock.sleep(700);
    wonAt = rig.clock.now();
    rig.before.readSender = async () => rig.clock.sleep(700);
  };
  expect((await rig.acquire()).firstSendAt).toBe(wonAt + INTERVAL_MS);
  expect(rig.clock.now()).toBe(wonAt + 700);
});

it('acquire of a process that only watches never takes a free lease, and goes on comparing', async () => {
  await givenBack();
  const watching = rig.watch(rig.makeKeeper({}, true));
  await rig.clock.advance(3 * LEASE_MS);
  expect(watching.held).toBeUndefined();
  expect((await rig.ledger.readSender()).lease).toMatchObject({ epoch: 1, released: true });
  expect(rig.comparedAt.length).toBeGreaterThan(2);
});

it('acquire makes its journal known, and forgets those out of use', async () => {
  const now = rig.clock.wallNow();
  await rig.another('other', { ...JOURNAL, journalId: 'j-old', at: now - DAY_MS - 1 });
  await rig.another('other', { ...JOURNAL, journalId: 'j-new', at: now });
  const held = await rig.acquire();
  expect(held.view.journals.map(({ journalId }) => journalId)).toEqual(['j-mine', 'j-new']);
});

it('a held lease has a heartbeat at once and every two seconds until it is given back', async () => {
  const held = await rig.acquire();
  await rig.advance(0);
  expect((await rig.lease())?.heartbeat).toBe(1);
  await rig.advance(9_500);
  expect((await rig.lease())?.heartbeat).toBe(5);
  await held.release();
  await rig.advance(5_000);
  expect(await rig.lease()).toMatchObject({ owner: 'me', heartbeat: 5, released: true });
  expect([held.lost.aborted, rig.logged]).toEqual([false, [ACQUIRED]]);
});

it('a held lease has five heartbeats in its time, however short that is, and twice as many tries without a reply', async () => {
  const held = await rig.acquire(rig.makeKeeper({ leaseMs: 1_000 }));
  await rig.advance(950);
  expect([held.heartbeat(), held.heldUntil() - rig.clock.now()]).toEqual([5, 850]);
  const triedAt: number[] = [];
  rig.before.renewLease = () => {
    triedAt.push(rig.clock.now());
    throw new Error('Redis unavailable');
  };
  await rig.advance(1_000);
  expect(triedAt.slice(1).map((at, index) => at - (triedAt[index] ?? 0))).toEqual(Array(9).fill(100));
});

it('a held lease knows what its last heartbeat saw of the ledger, and says when the next is there', async () => {
  const held = await rig.acquire();
  const { ledgerId } = held.view;
  expect(held.glance()).toEqual({ ledgerId, sendCount: 0, last: '', acts: 0, keptActs: 0, sending: 0 });
  const next = held.nextHeartbeat();
  const { token } = await rig.begin(held.lease);
  expect([held.glance()?.sendCount, next.aborted]).toEqual([0, false]);
  await rig.advance(2_000);
  expect(held.glance()).toEqual({ ledgerId, sendCount: 1, last: token, acts: 0, keptActs: 0, sending: 1 });
  expect([next.aborted, held.nextHeartbeat().aborted]).toEqual([true, false]);
});

it('a held lease is lost once a heartbeat finds another holder, who is not disturbed', async () => {
  const held = await rig.acquire();
  const other = await rig.another();
  const called = { renewLease: 0, releaseLease: 0 };
  for (const call of ['renewLease', 'releaseLease'] as const) rig.before[call] = () => void (called[call] += 1);
  await rig.advance(5_000);
  expect(held.lost.aborted).toBe(true);
  expect(rig.logged).toContain('warn another process has taken the lease');
  await held.release();
  expect(await rig.lease()).toEqual({ ...other, heartbeat: 0, released: false });
  expect(called).toEqual({ renewLease: 1, releaseLease: 0 });
});

it.each([3, 1])(
  'a held lease is lost when the ledger comes back as it was some heartbeats ago: %i',
  async (forgotten) => {
    const held = await rig.acquire();
    await rig.advance(6_000);
    const copy = rig.ledger.snapshot();
    await rig.advance(forgotten * 2_000);
    expect(held.heartbeat()).toBe((await rig.lease())?.heartbeat);
    rig.ledger.restore(copy);
    await rig.advance(2_000);
    expect(held.lost.aborted).toBe(true);
    expect(rig.logged).toContain('warn the ledger came back older; giving up the lease');
  },
);

it('a held lease is given up, and left to die, once the disk of the journal hangs', async () => {
  const held = await rig.acquire();
  const before = await rig.lease();
  rig.isStalled = true;
  await rig.advance(2_000);
  expect(held.lost.aborted).toBe(true);
  rig.isStalled = false;
  await rig.advance(LEASE_MS);
  await held.release();
  expect(await rig.lease()).toEqual(before);
});

it.each([
  ['between two heartbeats', 0],
  ['while a heartbeat was under way', 500],
])(
  'a held lease is given up, and left to die, once the process stood still for the lease time %s',
  async (_, forMs) => {
    const held = await rig.acquire();
    rig.before.renewLease = async () => rig.clock.sleep(forMs);
    await rig.advance(1_100);
    const before = await rig.lease();
    rig.suspendedMs = STANDSTILL_MS;
    await rig.advance(1_000);
    expect([held.lost.aborted, held.stoodStill()]).toEqual([true, true]);
    expect(rig.logged.at(-1)).toBe(
      'warn this process or its machine stood still, so another may have sent meanwhile; giving up the lease',
    );
    await held.release();
    await rig.advance(LEASE_MS);
    expect((await rig.lease())?.heartbeat).toBeLessThanOrEqual((before?.heartbeat ?? 0) + 1);
    expect((await rig.lease())?.released).toBe(false);
  },
);

it('a held lease is lost as soon as a send asks whether the process stood still', async () => {
  const held = await rig.acquire();
  await rig.advance(1_100);
  rig.suspendedMs = STANDSTILL_MS - 2_000;
  expect([held.stoodStill(), held.lost.aborted]).toEqual([false, false]);
  rig.suspendedMs += STANDSTILL_MS;
  expect([held.stoodStill(), held.lost.aborted]).toEqual([true, true]);
});

it('a held lease is lost at once if the process stood still while it was acquired', async () => {
  await givenBack();
  rig.after.acquireLease = () => void (rig.suspendedMs = STANDSTILL_MS);
  expect((await rig.acquire()).lost.aborted).toBe(true);
});

it('a held lease is not lost while Redis does not answer, however long', async () => {
  const held = await rig.acquire();
  rig.before.renewLease = async () => {
    await rig.clock.sleep(5_000);
    throw new Error('no reply');
  };
  await rig.advance(60_000);
  expect([held.lost.aborted, held.stoodStill()]).toEqual([false, false]);
});

it('a held lease is not lost while Redis is unavailable', async () => {
  const held = await rig.acquire();
  rig.before.renewLease = throwing('Redis unavailable');
  await rig.advance(60_000);
  expect(held.lost.aborted).toBe(false);
  expect(rig.logged).toContain('debug heartbeat failed');
  delete rig.before.renewLease;
  const lease = await rig.lease();
  await rig.advance(1_500);
  expect((await rig.lease())?.heartbeat).toBeGreaterThan(lease?.heartbeat ?? 0);
});

it('a held lease is not called lost by a heartbeat under way when it is given back', async () => {
  const held = await rig.acquire();
  rig.before.renewLease = async () => rig.clock.sleep(100);
  await rig.advance(1_050);
  await held.release();
  await rig.advance(1_000);
  expect(rig.logged).toEqual([ACQUIRED]);
});

it('a held lease without a heartbeat is not given back', async () => {
  const held = await rig.acquire();
  await rig.advance(1_500);
  held.stopHeartbeat();
  const lease = await rig.lease();
  await rig.advance(5_000);
  expect([await rig.lease(), lease?.released]).toEqual([lease, false]);
});

it('watching takes a lease one lease time after its last heartbeat was seen', async () => {
  const lease = await rig.another();
  const watching = rig.watch();
  for (let heartbeats = 0; heartbeats < 50; heartbeats += 1) {
    await rig.ledger.renewLease(lease);
    await rig.advance(LEASE_MS / 2);
  }
  await rig.advance(LEASE_MS / 2 - 1_000);
  expect(watching.held).toBeUndefined();
  await rig.advance(3_000);
  expect(watching.held?.lease.epoch).toBe(2);
});

it.each(['owner', 'epoch', 'heartbeat', 'absence'])(
  'watching takes a change of the %s for a heartbeat',
  async (change) => {
    const lease = await rig.another();
    const watching = rig.watch();
    await rig.advance(LEASE_MS - 500);
    const view = await rig.lease();
    if (view === undefined) throw new Error('no lease');
    if (change === 'heartbeat') await rig.ledger.renewLease(lease);
    else {
      const changed = { ...view, ...(change === 'owner' ? { owner: 'someone else' } : { epoch: 7 }) };
      rig.ledger.restore({ ...rig.ledger.snapshot(), lease: change === 'absence' ? undefined : changed });
    }
    await rig.advance(LEASE_MS - 1_000);
    expect(watching.held).toBeUndefined();
    await rig.advance(3_000);
    expect(watching.held).toBeDefined();
  },
);

it('watching takes no lease over because the wall clock jumped', async () => {
  await rig.another();
  const watching = rig.watch();
  await rig.advance(LEASE_MS / 2);
  rig.clock.wallOffsetMs += 60 * 60 * 1_000;
  await rig.advance(LEASE_MS / 2 - 2_000);
  expect(watching.held).toBeUndefined();
});

it('watching counts standing still from when the view was there', async () => {
  await rig.another();
  rig.after.readSender = async () => {
    delete rig.after.readSender;
    await rig.clock.sleep(5_000);
  };
  const startedAt = rig.clock.now();
  await rig.acquire();
  expect(rig.clock.now()).toBeGreaterThanOrEqual(startedAt + 5_000 + LEASE_MS);
});

it('watching does not count a reply that was long on its way as standing still', async () => {
  await rig.another();
  let reads = 0;
  rig.after.readSender = async () => {
    reads += 1;
    if (reads === 2) await rig.clock.sleep(2 * LEASE_MS);
    if (reads === 3) await rig.another('third');
  };
  const watching = rig.watch();
  await rig.advance(2 * LEASE_MS + 3_000);
  expect(watching.held).toBeUndefined();
});

it.each<[string, () => unknown]>([
  ['Redis was unavailable, since nobody could send a heartbeat meanwhile', throwing('Redis unavailable')],
  ['the journal objected', () => void (rig.mismatch = 'an older copy')],
])('watching begins to watch again once %s', async (_, hinder) => {
  await rig.another();
  const watching = rig.watch();
  await rig.advance(LEASE_MS - 1_500);
  rig.before.readSender = hinder;
  await rig.advance(3_000);
  delete rig.before.readSender;
  rig.mismatch = undefined;
  await rig.advance(LEASE_MS - 2_000);
  expect(watching.held).toBeUndefined();
  await rig.advance(6_000);
  expect(watching.held).toBeDefined();
});

it('watching begins to watch again when another was quicker', async () => {
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

it('watching reads the lease five times in a lease time of a second', async () => {
  let reads = 0;
  const lease = await rig.another();
  rig.before.readSender = async () => {
    reads += 1;
    await rig.ledger.renewLease(lease);
  };
  rig.watch(rig.makeKeeper({ leaseMs: 1_000 }));
  await rig.advance(999);
  expect(reads).toBe(5);
});

it('watching ends without a lease at the signal, before or while it watches', async () => {
  expect(await rig.makeKeeper().acquire(AbortSignal.abort())).toBeUndefined();
  await rig.another();
  const acquiring = rig.makeKeeper().acquire(rig.stop.signal);
  await rig.advance(3_000);
  rig.stop.abort();
  expect(await rig.clock.until(acquiring)).toBeUndefined();
  expect(await rig.lease()).toMatchObject({ owner: 'other', epoch: 1 });
});

it('watching stops the heartbeat when it cannot read what it has acquired', async () => {
  await givenBack();
  rig.before.acquireLease = () => {
    rig.before.readSender = () => {
      delete rig.before.readSender;
      throw new Error('Redis unavailable');
    };
  };
  const watching = rig.watch();
  await rig.advance(500);
  const lease = await rig.lease();
  await rig.advance(5_000);
  expect([await rig.lease(), watching.held]).toEqual([lease, undefined]);
});

it('an objection is looked for at first, and before the lease is taken', async () => {
  await rig.acquire();
  expect(rig.comparedAt).toHaveLength(2);
});

it('an objection keeps the lease from being taken, and is looked for every few seconds', async () => {
  await givenBack();
  rig.mismatch = 'an older copy';
  const watching = rig.watch();
  await rig.advance(39_000);
  expect(rig.comparedAt).toHaveLength(8);
  expect(watching.held).toBeUndefined();
  expect(await rig.lease()).toMatchObject({ epoch: 1 });
  rig.mismatch = undefined;
  await rig.advance(5_000);
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
    async () => rig.begin({ owner: 'other', epoch: (await rig.lease())?.epoch ?? 0 }, { token: 'another' }),
  ],
])('an objection is looked for again when the ledger %s, not when its holder sends', async (_, change) => {
  const lease = await rig.another();
  const older = rig.ledger.snapshot();
  rig.watch();
  await rig.advance(1_500);
  await rig.begin(lease);
  await rig.advance(1_000);
  expect(rig.comparedAt).toHaveLength(1);
  rig.ledger.restore(older);
  await change();
  await rig.advance(2_000);
  expect(rig.comparedAt).toHaveLength(2);
  await rig.advance(2_000);
  expect(rig.comparedAt).toHaveLength(2);
});

it('an objection is looked for every ten seconds where nothing changed', async () => {
  const lease = await rig.another();
  const startedAt = rig.clock.now();
  rig.watch();
  for (let second = 0; second < 25; second += 1) {
    await rig.ledger.renewLease(lease);
    await rig.advance(1_000);
  }
  expect(rig.comparedAt.map((at) => at - startedAt)).toEqual([0, 10_000, 20_000]);
});
