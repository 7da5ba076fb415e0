import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { Lease, SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { JOURNAL, nextBegin } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { DAY_MS, endAll, LEASE_MS, makeLoop, makeLoopWorld, type LoopWorld } from '../support/loop-rig.js';
import { GUARD_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, journaled } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = makeLoopWorld();
});
afterEach(async () => endAll(world));
const advance = async (ms: number): Promise<void> => world.clock.advance(ms);
const stateOf = async (payoutId: string) => (await world.ledger.readPayout(payoutId))?.state;
/** Another process takes the lease, and begins to send `p`. */
async function earlierSend(inFlightMs = 500): Promise<{ lease: Lease; attempt: SendAttempt }> {
  const { ledger } = world;
  ledger.enqueue(aPayout('p'));
  const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), JOURNAL, 0)) ?? 0;
  const lease = { owner: 'earlier', epoch };
  const asked = { ...(await nextBegin(ledger, lease, 'p')), inFlightMs };
  await ledger.beginSend(asked);
  return { lease, attempt: { payoutId: 'p', attempt: 1, token: asked.token } };
}
/** Sends `p` as soon as it may, and returns what its sender objects to. */
const sendP = async ({ sender, onMismatch }: ActiveSender, end: AbortSignal): Promise<void> => {
  const report = await sender.send('p', end);
  if (report.kind === 'ledger_mismatch') onMismatch(report.mismatch);
  await untilAborted(end);
};

describe('the role of the sender', () => {
  it('stands by until the lease has stood still, then binds the journal and works', async () => {
    const one = makeLoop(world);
    one.start();
    await advance(LEASE_MS - 1_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await advance(2_000);
    expect(one.loop.status).toEqual({ role: 'sender', epoch: 1 });
    expect(one.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' });
    const [journal] = (await world.ledger.readSender()).journals;
    expect(journal).toMatchObject({ journalId: 'j-one', host: 'host-one', dir: '/one', sends: 0, token: '' });
  });

  it('makes what an earlier sender left behind unknown before it works', async () => {
    await earlierSend();
    let found: string | undefined;
    const one = makeLoop(world, {
      work: async (_, end) => {
        found = await stateOf('p');
        await untilAborted(end);
      },
    });
    one.start();
    await advance(LEASE_MS + 1_000);
    expect(found).toBe('unknown');
  });

  it('records what its journal knows, and the ledger does not, before it works', async () => {
    const { lease, attempt } = await earlierSend();
    await world.ledger.markSendsUnknown(lease, [attempt], 'ended', 0);
    const journal = new MemoryJournal('j-one');
    journal.given({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' }, journaled(attempt), {
      ...attempt,
      outcome: { kind: 'accepted', txhash: 'h' },
      at: 0,
    });
    let found: string | undefined;
    const one = makeLoop(world, {
      journal,
      work: async (_, end) => {
        found = await stateOf('p');
        await untilAborted(end);
      },
    });
    one.start();
    await advance(LEASE_MS + 1_000);
    expect(found).toBe('in_progress');
    expect(one.said).toContain('info recorded the outcome from the journal');
  });

  it('gives the lease back once its work is over, and not before', async () => {
    let endWork = (): void => undefined;
    const one = makeLoop(world, {
      work: async (_, end) => {
        await untilAborted(end);
        await new Promise<void>((resolve) => (endWork = resolve));
      },
    });
    one.start();
    await advance(LEASE_MS + 1_000);
    one.stop.abort();
    await advance(5_000);
    expect((await world.ledger.readSender()).lease).toMatchObject({ released: false });
    endWork();
    await one.ended();
    expect((await world.ledger.readSender()).lease).toMatchObject({ released: true });
  });

  it('says that a new journal has nothing of before, where something was sent before', async () => {
    const warning = 'warn the send journal of this host is new: it has none of the earlier sends';
    const one = makeLoop(world);
    one.start();
    await advance(LEASE_MS + 1_000);
    expect(one.said).not.toContain(warning);
    await endAll(world);

    const { epoch, sendCount, token } = await world.ledger.adoptLedger(
      { epoch: 1, sendCount: 5 },
      { read: [], givenUp: [] },
    );
    const two = makeLoop(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 1_000);
    expect(two.said).toContain(warning);
    expect(two.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: epoch + 1, sends: sendCount, token });
  });

  it.each([
    ['its own time', 500, IN_FLIGHT_MAX_MS],
    ["its sender's, which is longer", 3 * IN_FLIGHT_MAX_MS, 3 * IN_FLIGHT_MAX_MS],
  ])('waits for a request that may still be on its way, by %s', async (_, inFlightMs, waitMs) => {
    await earlierSend(inFlightMs);
    world.ledger.enqueue(aPayout('q'));
    const one = makeLoop(world, {
      work: async ({ sender }, end) => {
        await sender.send('q', end);
        await untilAborted(end);
      },
    });
    const startedAt = world.clock.now();
    one.start();
    const holdOffMs = (GUARD_MS + waitMs) * 1.001 + INTERVAL_MS;
    await advance(LEASE_MS + holdOffMs - 1_000);
    expect({ status: one.loop.status.role, sent: one.gateway.arrivals }).toEqual({ status: 'sender', sent: [] });
    await advance(3_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    expect(one.gateway.arrivals[0]?.at).toBeGreaterThanOrEqual(startedAt + LEASE_MS + holdOffMs);
  });

  it('notes in its journal which others have sends of the account, each once', async () => {
    const { ledger } = world;
    await ledger.acquireLease('other', await ledger.readSender(), { ...JOURNAL, at: world.clock.wallNow() }, 0);
    const one = makeLoop(world);
    one.start();
    await advance(LEASE_MS + 15_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
    const peer = expect.objectContaining({ journalId: 'j-one', host: 'host-1', dir: '/journal' });
    // The account's own journal is named `j-one` too: it notes none of that name.
    expect(one.journal.peers).not.toContainEqual(peer);
    await endAll(world);

    const two = makeLoop(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 15_000);
    await endAll(world);
    expect(two.journal.lines.filter((line) => 'peers' in line)).toHaveLength(1);
    expect(two.journal.peers).toEqual([peer]);
  });

  it('starts again where its work fails, without giving the lease back', async () => {
    const epochs: number[] = [];
    let works = 0;
    const one = makeLoop(world, {
      work: async (_, end) => {
        works += 1;
        if (works === 1) throw new Error('no queue');
        await untilAborted(end);
      },
    });
    one.after.acquireLease = async () => {
      epochs.push((await world.ledger.readSender()).lease?.epoch ?? 0);
    };
    one.start();
    await advance(LEASE_MS + 1_000);
    expect((await world.ledger.readSender()).lease).toMatchObject({ epoch: 1, released: false });
    expect(one.loop.status).toEqual({ role: 'standby' });
    await advance(LEASE_MS + 4_000);
    expect(one.loop.status).toEqual({ role: 'sender', epoch: 2 });
    expect(epochs).toEqual([1, 2]);
    expect(one.said).toContain('error sender loop failed; restarting');
  });
});

describe('a lease that goes from one process to the next', () => {
  const QUARANTINE_MS = 20_000;

  /** @returns how long after the last response of the first process the second one writes */
  const handOver = async (journals: readonly [MemoryJournal, MemoryJournal]): Promise<number> => {
    world.ledger.enqueue(aPayout('p'));
    const [first, second] = [
      makeLoop(world, { name: 'one', journal: journals[0], quarantineMs: QUARANTINE_MS, work: sendP }),
      makeLoop(world, {
        name: 'two',
        journal: journals[1],
        quarantineMs: QUARANTINE_MS,
        work: async ({ sender }, end) => {
          await sender.send('q', end);
          await untilAborted(end);
        },
      }),
    ];
    first.start();
    await advance(LEASE_MS + QUARANTINE_MS + 2_000);
    expect(first.gateway.arrivals).toHaveLength(1);
    first.stop.abort();
    await first.ended();
    const endedAt = world.clock.now();
    world.ledger.enqueue(aPayout('q'));
    second.start();
    await advance(2 * QUARANTINE_MS);
    expect(second.gateway.arrivals).toHaveLength(1);
    return (second.gateway.arrivals[0]?.at ?? 0) - endedAt;
  };

  it('waits only the interval where both have the same journal', async () => {
    const file = new MemoryJournal('j-shared');
    const afterMs = await handOver([file, new MemoryJournal('j-shared', file.lines)]);
    expect(afterMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    expect(afterMs).toBeLessThan(INTERVAL_MS + 2_000);
  });

  it('waits the quarantine where the next has another one: the first may have to object', async () => {
    const afterMs = await handOver([new MemoryJournal('j-one'), new MemoryJournal('j-two')]);
    expect(afterMs).toBeGreaterThanOrEqual(QUARANTINE_MS);
  });

  it('forgets journals that were not used for as long as their files are kept', async () => {
    const { ledger, clock } = world;
    const old = { ...JOURNAL, journalId: 'j-old', at: clock.wallNow() - DAY_MS - 60_000 };
    await ledger.acquireLease('other', await ledger.readSender(), old, 0);
    makeLoop(world).start();
    await advance(LEASE_MS + 2_000);
    expect((await ledger.readSender()).journals.map(({ journalId }) => journalId)).toEqual(['j-one']);
  });
});
