import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../src/clock.js';
import { RedisUnavailableError } from '../../src/errors.js';
import type { JournalLine } from '../../src/journal/journal-line.js';
import type { Objection } from '../../src/ledger/objections.js';
import type { Lease, SendAttempt } from '../../src/ledger/sender-ledger.js';
import type { SenderDuty } from '../../src/worker/sender-role.js';
import { JOURNAL, nextBegin } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { MemoryJournal } from './support/memory-journal.js';
import { DAY_MS, endAll, LEASE_MS, makeRole, makeRoleWorld, type RoleRig, type RoleWorld } from './support/role-rig.js';
import { GUARD_MS, IN_FLIGHT_MAX_MS, INTERVAL_MS, journaled } from './support/send-rig.js';

let world: RoleWorld;
beforeEach(() => {
  world = makeRoleWorld();
});
afterEach(async () => endAll(world));

const UNAVAILABLE = new RedisUnavailableError('Redis unavailable');
const REFUSED = 'the ledger contradicts it';

const advance = async (ms: number): Promise<void> => world.clock.advance(ms);
const errorsOf = ({ said }: RoleRig): string[] => said.filter((line) => line.startsWith('error'));
const objections = async (): Promise<readonly Objection[]> => (await world.ledger.readSender()).objections;
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

/** Sends `p` as soon as it may, and tells what its sender objects to. */
const sendP = async ({ sender, onRefused }: SenderDuty, end: AbortSignal): Promise<void> => {
  const report = await sender.send('p', end);
  if (report.kind === 'ledger_refused') onRefused(report.mismatch);
  await untilAborted(end);
};

const refuse = async ({ onRefused }: SenderDuty, end: AbortSignal): Promise<void> => {
  onRefused({ kind: 'ledger', reason: REFUSED });
  await untilAborted(end);
};

describe('the role of the sender', () => {
  it('stands by until the lease has stood still, then binds the journal and works', async () => {
    const one = makeRole(world);
    one.start();
    await advance(LEASE_MS - 1_000);
    expect(one.role.status).toEqual({ role: 'standby' });
    await advance(2_000);
    expect(one.role.status).toEqual({ role: 'sender', epoch: 1 });
    expect(one.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' });
    const [journal] = (await world.ledger.readSender()).journals;
    expect(journal).toMatchObject({ journalId: 'j-one', host: 'host-one', dir: '/one', sends: 0, token: '' });
  });

  it('makes what an earlier sender left behind unknown before it works', async () => {
    await earlierSend();
    let found: string | undefined;
    const one = makeRole(world, {
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
    await world.ledger.abandonSends(lease, [attempt], 'ended', 0);
    const journal = new MemoryJournal('j-one');
    journal.given({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' }, journaled(attempt), {
      ...attempt,
      outcome: { kind: 'accepted', txhash: 'h' },
      at: 0,
    });
    let found: string | undefined;
    const one = makeRole(world, {
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
    const one = makeRole(world, {
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

  it('says that a new journal witnesses nothing of before, where something was sent before', async () => {
    const warning = 'warn the send journal of this host is new: it can witness nothing that was sent before';
    const one = makeRole(world);
    one.start();
    await advance(LEASE_MS + 1_000);
    expect(one.said).not.toContain(warning);
    await endAll(world);

    const { epoch, sends, token } = await world.ledger.adoptLedger({ epoch: 1, sends: 5 }, { read: [], givenUp: [] });
    const two = makeRole(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 1_000);
    expect(two.said).toContain(warning);
    expect(two.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: epoch + 1, sends, token });
  });

  it.each([
    ['its own time', 500, IN_FLIGHT_MAX_MS],
    ["its sender's, which is longer", 3 * IN_FLIGHT_MAX_MS, 3 * IN_FLIGHT_MAX_MS],
  ])('waits for a request that may still be on its way, by %s', async (_, inFlightMs, waitMs) => {
    await earlierSend(inFlightMs);
    world.ledger.enqueue(aPayout('q'));
    const one = makeRole(world, {
      work: async ({ sender }, end) => {
        await sender.send('q', end);
        await untilAborted(end);
      },
    });
    const startedAt = world.clock.now();
    one.start();
    const quietMs = (GUARD_MS + waitMs) * 1.001 + INTERVAL_MS;
    await advance(LEASE_MS + quietMs - 1_000);
    expect({ status: one.role.status.role, sent: one.gateway.arrivals }).toEqual({ status: 'sender', sent: [] });
    await advance(3_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    expect(one.gateway.arrivals[0]?.at).toBeGreaterThanOrEqual(startedAt + LEASE_MS + quietMs);
  });

  it('notes in its journal which others witness sends of the account, each once', async () => {
    const { ledger } = world;
    await ledger.acquireLease('other', await ledger.readSender(), { ...JOURNAL, at: world.clock.wallNow() }, 0);
    const one = makeRole(world);
    one.start();
    await advance(LEASE_MS + 15_000);
    expect(one.role.status).toMatchObject({ role: 'sender' });
    const peer = expect.objectContaining({ journalId: 'j-one', host: 'host-1', dir: '/journal' });
    // The account's own journal is named `j-one` too: it notes none of that name.
    expect(one.journal.peers).not.toContainEqual(peer);
    await endAll(world);

    const two = makeRole(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 15_000);
    await endAll(world);
    expect(two.journal.lines.filter((line) => 'peers' in line)).toHaveLength(1);
    expect(two.journal.peers).toEqual([peer]);
  });

  it('starts again where its work fails, without giving the lease back', async () => {
    const epochs: number[] = [];
    let works = 0;
    const one = makeRole(world, {
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
    expect(one.role.status).toEqual({ role: 'standby' });
    await advance(LEASE_MS + 4_000);
    expect(one.role.status).toEqual({ role: 'sender', epoch: 2 });
    expect(epochs).toEqual([1, 2]);
    expect(one.said).toContain('error sender loop failed; restarting');
  });
});

describe('a role whose journal does not agree with the ledger, before it has the lease', () => {
  const other = (given: object = {}): JournalLine => ({
    ledgerId: 'ledger-0',
    epoch: 3,
    sends: 7,
    token: 'seventh',
    ...given,
  });

  it('does not take the ledger, says so once, and records one objection, until it agrees', async () => {
    const one = makeRole(world);
    one.journal.given(other(), journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    let recorded = 0;
    one.before.object = () => void (recorded += 1);
    one.start();
    await advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect(one.role.status).toEqual({ role: 'refused', reason });
    expect((await world.ledger.readSender()).lease).toBeUndefined();
    expect(await objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason, host: 'host-one', dir: '/one', sends: 7 }),
    ]);
    expect({ recorded, errors: errorsOf(one).length }).toEqual({ recorded: 1, errors: 1 });

    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 0, sends: 9 }));
    await advance(LEASE_MS);
    expect(one.role.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect({ recorded, errors: errorsOf(one).length }).toEqual({ recorded: 1, errors: 2 });

    // As an adoption does it.
    one.journal.lines.length = 1;
    await world.ledger.adoptLedger({ epoch: 0, sends: 7 }, { read: [{ ...JOURNAL, journalId: 'j-one' }], givenUp: [] });
    await advance(5_000);
    expect(one.role.status).toEqual({ role: 'standby' });
    await advance(LEASE_MS + 3_000);
    expect(one.role.status).toMatchObject({ role: 'sender' });
  });

  it('records its objection while another process holds the lease, too', async () => {
    const holder = makeRole(world, { name: 'holder' });
    holder.start();
    await advance(LEASE_MS + 1_000);
    const one = makeRole(world);
    one.journal.given(other({ ledgerId: 'ledger-1' }));
    one.start();
    await advance(1_000);
    expect(await objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(holder.role.status).toMatchObject({ role: 'sender' });
  });

  it('compares again every ten seconds while it stands by', async () => {
    const holder = makeRole(world, { name: 'holder' });
    holder.start();
    await advance(LEASE_MS + 1_000);
    const one = makeRole(world);
    one.start();
    await advance(1_500);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1' }));
    await advance(7_000);
    expect(one.role.status).toEqual({ role: 'standby' });
    await advance(4_000);
    expect(one.role.status).toMatchObject({ role: 'refused' });
  });

  it.each<[string, (journal: MemoryJournal) => void, RegExp]>([
    [
      'cannot be read',
      (journal) => {
        journal.onReload = () => {
          throw new Error('EACCES');
        };
      },
      /EACCES/,
    ],
    [
      'was damaged while it was in use',
      (journal) => {
        journal.damage();
      },
      /was damaged/,
    ],
    [
      'lost entries that the ledger knows of',
      (journal) => {
        journal.given(other({ ledgerId: 'ledger-1', epoch: 0, sends: 0, token: '' }));
      },
      /lacks its last entries/,
    ],
  ])('refuses by itself where the journal %s, records no objection, and heals', async (_, spoil, reason) => {
    // The ledger knows that the journal had an entry.
    const { ledger } = world;
    const known = { ...JOURNAL, journalId: 'j-one', sends: 1, token: 'first', at: world.clock.wallNow() };
    const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), known, 0)) ?? 0;
    ledger.enqueue(aPayout('q'));
    const asked = await nextBegin(ledger, { owner: 'earlier', epoch }, 'q');
    await ledger.beginSend({ ...asked, journal: known });

    const one = makeRole(world);
    spoil(one.journal);
    one.start();
    await advance(LEASE_MS + 2_000);
    expect(one.role.status).toEqual({ role: 'refused', reason: expect.stringMatching(reason) });
    expect(await objections()).toEqual([]);
    expect(errorsOf(one)).toHaveLength(1);
    const two = makeRole(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 5_000);
    expect(two.role.status).toMatchObject({ role: 'sender' });

    one.journal.onReload = () => undefined;
    one.journal.damage(false);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: asked.token }));
    await advance(5_000);
    expect(one.role.status).toEqual({ role: 'standby' });
  });
});

describe('a sender that finds that journal and ledger contradict each other', () => {
  it('records an objection, however long Redis is unavailable, and keeps the lease until then', async () => {
    const one = makeRole(world, { work: refuse });
    let isAway = true;
    one.before.object = () => {
      if (isAway) throw UNAVAILABLE;
    };
    one.start();
    await advance(LEASE_MS + 20_000);
    expect(one.role.status).toEqual({ role: 'refused', reason: REFUSED });
    expect(await objections()).toEqual([]);
    const { beat = 0 } = (await world.ledger.readSender()).lease ?? {};
    await advance(5_000);
    expect((await world.ledger.readSender()).lease?.beat).toBeGreaterThan(beat);

    isAway = false;
    await advance(1_000);
    expect(await objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason: REFUSED, host: 'host-one' }),
    ]);
    expect((await world.ledger.readSender()).lease).toMatchObject({ released: false });
    expect(errorsOf(one)).toHaveLength(1);
  });

  it('tries no longer to record it than its grace, once it has to end', async () => {
    const one = makeRole(world, { work: refuse });
    one.before.object = () => {
      throw UNAVAILABLE;
    };
    one.start();
    await advance(LEASE_MS + 2_000);
    one.stop.abort();
    const stoppedAt = world.clock.now();
    await one.ended();
    expect(world.clock.now() - stoppedAt).toBeGreaterThanOrEqual(10_000);
    expect(world.clock.now() - stoppedAt).toBeLessThan(12_000);
    expect(await objections()).toEqual([]);
  });

  it('finds it also while there is nothing to send', async () => {
    world.ledger.enqueue(aPayout('p'));
    await world.ledger.readSender();
    const older = world.ledger.snapshot();
    const one = makeRole(world, { work: sendP });
    one.start();
    await advance(LEASE_MS + 5_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    const { lease } = await world.ledger.readSender();
    world.ledger.restore({ ...older, lease });
    await advance(4_000);
    expect(one.role.status).toMatchObject({ role: 'refused', reason: expect.stringContaining('older') });
    expect(await objections()).toMatchObject([
      { journalId: 'j-one', kind: 'ledger', reason: expect.stringContaining('came back older'), sends: 1 },
    ]);
  });

  it('says that it is the journal that lacks something, where that was deleted', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = makeRole(world, { work: sendP });
    one.start();
    await advance(LEASE_MS);
    one.journal.damage();
    await advance(5_000);
    expect(one.gateway.arrivals).toEqual([]);
    expect(await objections()).toMatchObject([
      { journalId: 'j-one', kind: 'journal', reason: expect.stringMatching(/was damaged/) },
    ]);
    expect(one.role.status).toMatchObject({ role: 'refused', reason: expect.stringMatching(/was damaged/) });
  });
});

describe('a sender whose outcome cannot be recorded', () => {
  it('says so in its status while Redis refuses it, and is a sender again once it could be', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = makeRole(world, { work: sendP });
    let refusal: Error | undefined = new Error('OOM command not allowed');
    one.before.finishSend = () => {
      if (refusal !== undefined) throw refusal;
    };
    one.start();
    await advance(LEASE_MS + 10_000);
    expect(one.role.status).toEqual({
      role: 'refused',
      reason: 'cannot record the outcome, payout p: OOM command not allowed',
    });
    expect(errorsOf(one)).toContain('error cannot record the outcome: Redis refuses it');
    refusal = UNAVAILABLE;
    await advance(5_000);
    refusal = undefined;
    await advance(3_000);
    expect(await stateOf('p')).toBe('in_progress');
    expect(one.role.status).toEqual({ role: 'sender', epoch: 1 });
  });
});

describe('a sender that loses the lease while a send is under way', () => {
  const LONG_MS = 50_000;

  const loseLease = async (): Promise<RoleRig> => {
    world.ledger.enqueue(aPayout('p'));
    await world.ledger.readSender();
    const older = world.ledger.snapshot();
    const one = makeRole(world, { work: sendP });
    one.gateway.answerMs = LONG_MS;
    one.start();
    await advance(LEASE_MS + 5_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    // As many sends, so that only the journal can tell.
    const lease = { owner: 'two', epoch: 7, beat: 0, released: false };
    world.ledger.restore({ ...older, lease, sends: 1, last: 'theirs' });
    return one;
  };

  it('compares ledger and journal at once, not only when the response is there', async () => {
    const one = await loseLease();
    await advance(3_000);
    expect(await objections()).toMatchObject([
      { journalId: 'j-one', kind: 'ledger', reason: expect.stringContaining('payout p was sent'), sends: 1 },
    ]);
    expect(one.role.status).toMatchObject({ role: 'refused' });
  });

  it('objects once more where the ledger forgets the objection while the send still takes', async () => {
    await loseLease();
    const forgetful = world.ledger.snapshot();
    await advance(3_000);
    expect(await objections()).toHaveLength(1);
    world.ledger.restore(forgetful);
    expect(await objections()).toEqual([]);
    await advance(3_000);
    expect(await objections()).toHaveLength(1);
  });

  it('tries until Redis can be asked', async () => {
    const one = await loseLease();
    one.before.readSender = () => {
      throw UNAVAILABLE;
    };
    await advance(20_000);
    expect(await objections()).toEqual([]);
    delete one.before.readSender;
    await advance(1_000);
    expect(await objections()).toHaveLength(1);
  });

  it('objects to nothing where the ledger knows its send', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = makeRole(world, { work: sendP });
    one.gateway.answerMs = LONG_MS;
    one.start();
    await advance(LEASE_MS + 5_000);
    const { ledger } = world;
    await ledger.acquireLease('two', await ledger.readSender(), JOURNAL, 0);
    await advance(LONG_MS);
    expect(await objections()).toEqual([]);
    expect(await stateOf('p')).toBe('in_progress');
  });
});

describe('a lease that goes from one process to the next', () => {
  const QUARANTINE_MS = 20_000;

  /** @returns how long after the last answer of the first process the second one writes */
  const handOver = async (journals: readonly [MemoryJournal, MemoryJournal]): Promise<number> => {
    world.ledger.enqueue(aPayout('p'));
    const [first, second] = [
      makeRole(world, { name: 'one', journal: journals[0], quarantineMs: QUARANTINE_MS, work: sendP }),
      makeRole(world, {
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
    makeRole(world).start();
    await advance(LEASE_MS + 2_000);
    expect((await ledger.readSender()).journals.map(({ journalId }) => journalId)).toEqual(['j-one']);
  });
});
