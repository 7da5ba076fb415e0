import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { cutFromRedis, LoopWorld, type LoopRig } from '../support/loop-rig.js';
import { INTERVAL_MS, journaled, LEASE_MS } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});
describe('the role of the sender', () => {
  it('stands by until the lease has stood still, then binds the journal and works', async () => {
    const one = world.start();
    await world.advance(LEASE_MS - 1_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(2_000);
    expect(one.loop.status).toEqual({ role: 'sender', epoch: 1 });
    expect(one.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' });
    const [journal] = (await world.ledger.readSender()).journals;
    expect(journal).toMatchObject({ journalId: 'j-one', host: 'host-one', dir: '/one', sends: 0, token: '' });
  });

  it('records what its journal knows, and the ledger does not, before it works', async () => {
    const { lease, attempt } = await world.earlierSend();
    await world.ledger.markSendsUnknown(lease, [attempt], 'ended', 0);
    const journal = new MemoryJournal('j-one');
    journal.given({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' }, journaled(attempt), {
      ...attempt,
      outcome: { kind: 'accepted', txhash: 'h' },
      at: 0,
    });
    let found: string | undefined;
    const one = world.make({
      journal,
      work: async (_, end) => {
        found = await world.stateOf('p');
        await untilAborted(end);
      },
    });
    one.start();
    await world.advance(LEASE_MS + 1_000);
    expect(found).toBe('in_progress');
    expect(one.said).toContain('info recorded the outcome from the journal');
  });

  it('gives the lease back once its work is over, and not before', async () => {
    let endWork = (): void => undefined;
    const one = world.make({
      work: async (_, end) => {
        await untilAborted(end);
        await new Promise<void>((resolve) => (endWork = resolve));
      },
    });
    one.start();
    await world.advance(LEASE_MS + 1_000);
    one.stop.abort();
    await world.advance(5_000);
    expect(await world.lease()).toMatchObject({ released: false });
    endWork();
    await one.ended();
    expect(await world.lease()).toMatchObject({ released: true });
  });

  it('says that a new journal has nothing of before, where something was sent before', async () => {
    const warning = 'warn the send journal of this host is new: it has none of the earlier sends';
    const one = world.start();
    await world.advance(LEASE_MS + 1_000);
    expect(one.said).not.toContain(warning);
    await world.endAll();

    const { epoch, sendCount, token } = await world.ledger.adoptLedger(
      { epoch: 1, sendCount: 5 },
      { read: [], givenUp: [] },
    );
    const two = world.start({ name: 'two' });
    await world.advance(LEASE_MS + 1_000);
    expect(two.said).toContain(warning);
    expect(two.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: epoch + 1, sends: sendCount, token });
  });

  it('notes in its journal which others have sends of the account, each once', async () => {
    const { ledger } = world;
    await ledger.acquireLease('other', await ledger.readSender(), { ...JOURNAL, at: world.clock.wallNow() }, 0);
    const one = world.start();
    await world.advance(LEASE_MS + 15_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
    const peer = expect.objectContaining({ journalId: 'j-one', host: 'host-1', dir: '/journal' });
    // The account's own journal is named `j-one` too: it notes none of that name.
    expect(one.journal.peers).not.toContainEqual(peer);
    await world.endAll();

    const two = world.start({ name: 'two' });
    await world.advance(LEASE_MS + 15_000);
    await world.endAll();
    expect(two.journal.lines.filter((line) => 'peers' in line)).toHaveLength(1);
    expect(two.journal.peers).toEqual([peer]);
  });

  it('starts again where its work fails, without giving the lease back', async () => {
    const epochs: number[] = [];
    let works = 0;
    const one = world.make({
      work: async (_, end) => {
        works += 1;
        if (works === 1) throw new Error('no queue');
        await untilAborted(end);
      },
    });
    one.after.acquireLease = async () => {
      epochs.push((await world.lease())?.epoch ?? 0);
    };
    one.start();
    await world.advance(LEASE_MS + 1_000);
    expect(await world.lease()).toMatchObject({ epoch: 1, released: false });
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(LEASE_MS + 4_000);
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
      world.make({ name: 'one', journal: journals[0], quarantineMs: QUARANTINE_MS, work: world.sendOnce() }),
      world.make({
        name: 'two',
        journal: journals[1],
        quarantineMs: QUARANTINE_MS,
        work: world.sendOnce('q'),
      }),
    ];
    first.start();
    await world.advance(LEASE_MS + QUARANTINE_MS + 2_000);
    expect(first.gateway.arrivals).toHaveLength(1);
    first.stop.abort();
    await first.ended();
    const endedAt = world.clock.now();
    world.ledger.enqueue(aPayout('q'));
    second.start();
    await world.advance(2 * QUARANTINE_MS);
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
});

describe('a process that is to stop while its send waits for the response', () => {
  const QUARANTINE_MS = 10_000;
  const RESPONSE_MS = 25_000;

  /** Host A has written the request for `p`, and waits for its response, when it is asked to stop; host B stands by. */
  async function stopWhileSending(): Promise<{ a: LoopRig; b: LoopRig; restore: () => void }> {
    const settings = { quarantineMs: QUARANTINE_MS, work: world.sendQueued() };
    const a = world.make({ name: 'A', ...settings });
    a.gateway.responseMs = RESPONSE_MS;
    a.start();
    await world.advance(LEASE_MS + QUARANTINE_MS + 2_000);
    const copy = world.ledger.snapshot();
    world.ledger.enqueue(aPayout('p'));
    const withPayout = world.ledger.snapshot();
    await world.advance(2_000);
    expect(await world.stateOf('p')).toBe('sending');
    expect(a.gateway.arrivals).toHaveLength(1);
    const b = world.start({ name: 'B', ...settings });
    await world.advance(1_000);
    a.stop.abort();
    await world.advance(1_000);
    const restore = (): void => {
      world.ledger.restore({ ...withPayout, lease: copy.lease });
    };
    return { a, b, restore };
  }

  it('objects where Redis comes back older meanwhile, so that no other host sends it again', async () => {
    const { a, b, restore } = await stopWhileSending();
    restore();
    await world.advance(5_000);
    const { objections } = await world.ledger.readSender();
    expect(objections.map(({ journalId }) => journalId)).toEqual(['j-A']);
    await world.advance(120_000);
    await a.ended();
    expect(b.gateway.arrivals).toHaveLength(0);
  });

  it('objects also where Redis can be reached again only later', async () => {
    const { a, b, restore } = await stopWhileSending();
    const join = [cutFromRedis(a), cutFromRedis(b)];
    await world.advance(2_000);
    restore();
    for (const each of join) each();
    await world.advance(120_000);
    await a.ended();
    expect(b.gateway.arrivals).toHaveLength(0);
  });
});
