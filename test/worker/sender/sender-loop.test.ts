import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { putPayout } from '../../world/world-ledger.js';
import { cutFromRedis, LoopWorld, type LoopRig, type LoopRigOptions } from '../support/loop-rig.js';
import { INTERVAL_MS, journaled, LEASE_MS, throwing, UNAVAILABLE } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

/** A process that has had the time to become the sender. */
async function startSender(options: LoopRigOptions = {}, prepare?: (rig: LoopRig) => void) {
  const rig = world.make(options);
  prepare?.(rig);
  rig.start();
  await world.advance(LEASE_MS + (options.quarantineMs ?? 0) + 5_000);
  return rig;
}

const FAILED = 'error sender loop failed; restarting';

it('a role stands by until the lease stood still, then binds the journal and works', async () => {
  const one = world.start();
  await world.advance(LEASE_MS - 1_000);
  expect(one.loop.status).toEqual({ role: 'standby' });
  await world.advance(2_000);
  expect(one.loop.status).toEqual({ role: 'sender', epoch: 1 });
  expect(one.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' });
  const [journal] = (await world.ledger.readSender()).journals;
  expect(journal).toMatchObject({ journalId: 'j-one', host: 'host-one', dir: '/one', sends: 0, token: '' });
});

it('a role tells the ledger what its journal knows before it works', async () => {
  const { lease, attempt } = await world.earlierSend();
  await world.ledger.markSendsUnknown(lease, [attempt], 'ended', 0);
  const journal = new MemoryJournal('j-one');
  const outcome = { kind: 'accepted', gatewayId: 'h' } as const;
  const ledger = { ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' };
  journal.given(ledger, journaled(attempt), { ...attempt, outcome, at: 0 });
  let found: string | undefined;
  const work = async (_: ActiveSender, end: AbortSignal) => {
    found = await world.stateOf('p');
    await untilAborted(end);
  };
  const one = await startSender({ journal, work });
  expect(found).toBe('in_progress');
  expect(one.said).toContain('info recorded the outcome from the journal');
});

it('a role gives the lease back once its work is over, and not before', async () => {
  let endWork = (): void => undefined;
  const work = async (_: ActiveSender, end: AbortSignal) => {
    await untilAborted(end);
    await new Promise<void>((resolve) => (endWork = resolve));
  };
  const one = await startSender({ work });
  one.stop.abort();
  await world.advance(5_000);
  expect(await world.lease()).toMatchObject({ released: false });
  endWork();
  await one.ended();
  expect(await world.lease()).toMatchObject({ released: true });
});

it('a role says that a new journal has nothing of what was sent before', async () => {
  const warning = 'warn the send journal of this host is new: it has none of the earlier sends';
  expect((await startSender()).said).not.toContain(warning);
  await world.endAll();
  const highest = { epoch: 1, sendCount: 5 };
  const { epoch, sendCount, token } = await world.ledger.adoptLedger(highest, { read: [], givenUp: [] });
  const two = await startSender({ name: 'two' });
  expect(two.said).toContain(warning);
  expect(two.journal.ledger).toEqual({ ledgerId: 'ledger-1', epoch: epoch + 1, sends: sendCount, token });
});

it('a role notes in its journal which others have sends of the account, each once', async () => {
  const { ledger } = world;
  await ledger.acquireLease('other', await ledger.readSender(), { ...JOURNAL, at: world.clock.wallNow() }, 0);
  const one = await startSender();
  expect(one.loop.status).toMatchObject({ role: 'sender' });
  const peer = expect.objectContaining({ journalId: 'j-one', host: 'host-1', dir: '/journal' });
  // The account's own journal is named `j-one` too: it notes none of that name.
  expect(one.journal.peers).not.toContainEqual(peer);
  await world.endAll();
  const two = await startSender({ name: 'two' });
  await world.advance(10_000);
  await world.endAll();
  expect(two.journal.lines.filter((line) => 'peers' in line)).toHaveLength(1);
  expect(two.journal.peers).toEqual([peer]);
});

it('a role starts again where its work fails, without giving the lease back', async () => {
  let works = 0;
  const work = async (_: ActiveSender, end: AbortSignal) => {
    works += 1;
    if (works === 1) throw new Error('no queue');
    await untilAborted(end);
  };
  const one = await startSender({ work });
  expect(await world.lease()).toMatchObject({ epoch: 1, released: false });
  expect(one.loop.status).toEqual({ role: 'standby' });
  await world.advance(LEASE_MS);
  expect(one.loop.status).toEqual({ role: 'sender', epoch: 2 });
  expect(one.said).toContain(FAILED);
});

it('a role that was the sender tells the ledger again what its journal knows', async () => {
  const { lease, attempt } = await world.earlierSend();
  await world.ledger.markSendsUnknown(lease, [attempt], 'ended', 0);
  const journal = new MemoryJournal('j-one');
  journal.given({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' }, journaled(attempt));
  let works = 0;
  const work = async (_: ActiveSender, end: AbortSignal) => {
    works += 1;
    if (works > 1) return untilAborted(end);
    journal.noteOutcome(attempt, { kind: 'accepted', gatewayId: 'h' }, 0);
    throw new Error('no queue');
  };
  await startSender({ journal, work });
  await world.advance(LEASE_MS);
  expect([works, await world.stateOf('p')]).toEqual([2, 'in_progress']);
});

it('a role whose work fails keeps the lease until a recovery in progress has ended', async () => {
  let calls = 0;
  let endRecovery = (): void => undefined;
  const work = async (_: ActiveSender, end: AbortSignal) => {
    putPayout(world.ledger, { payoutId: 'left', state: 'sending' });
    while (calls < 2 && !end.aborted) await world.clock.sleep(100, end);
    throw new Error('no queue');
  };
  const one = await startSender({ work }, ({ before }) => {
    before.readSending = async () => {
      if ((calls += 1) === 2) await new Promise<void>((resolve) => (endRecovery = resolve));
    };
  });
  await world.advance(5_000);
  const saidMeanwhile = [...one.said];
  endRecovery();
  await world.advance(1_000);
  expect(saidMeanwhile).not.toContain(FAILED);
  expect(one.said).toContain(FAILED);
});

it('a role ends at once if Redis is unavailable and there is nothing to record', async () => {
  const one = await startSender();
  cutFromRedis(one);
  const stoppedAt = world.clock.now();
  one.stop.abort();
  await one.ended();
  expect(world.clock.now() - stoppedAt).toBeLessThan(2_000);
});

it('a role gives the lease back where its work finds the ledger of another gateway', async () => {
  let works = 0;
  const work = async ({ onOtherGateway }: ActiveSender, end: AbortSignal) => {
    works += 1;
    if (works === 1) onOtherGateway('staging');
    await untilAborted(end);
  };
  const one = await startSender({ work });
  expect(one.errors()).toEqual([expect.stringContaining('the ledger is of another gateway')]);
  expect([works, await world.lease()]).toEqual([2, expect.objectContaining({ epoch: 2 })]);
});

it('a role says that Redis refuses its outcome, until that could be recorded', async () => {
  world.ledger.enqueue(aPayout('p'));
  let failure: Error | undefined = new Error('OOM command not allowed');
  const one = await startSender({ work: world.sendOnce() }, ({ before }) => {
    before.finishSend = () => {
      if (failure !== undefined) throw failure;
    };
  });
  const reason = 'cannot record the outcome, payout p: OOM command not allowed';
  expect(one.loop.status).toEqual({ role: 'refused', reason });
  expect(one.errors()).toContain('error cannot record the outcome: Redis refuses it');
  failure = UNAVAILABLE;
  await world.advance(5_000);
  failure = undefined;
  await world.advance(3_000);
  expect([await world.stateOf('p'), one.loop.status]).toEqual(['in_progress', { role: 'sender', epoch: 1 }]);
});

it.each([
  ['only the interval, where both have the same journal', true],
  ['the quarantine, where the next has another one: the first may have to object', false],
])('a lease that goes from one process to the next waits %s', async (_, isSame) => {
  const quarantineMs = 20_000;
  const file = new MemoryJournal('j-one');
  const other = isSame ? new MemoryJournal('j-one', file.lines) : new MemoryJournal('j-two');
  world.ledger.enqueue(aPayout('p'));
  const first = await startSender({ journal: file, quarantineMs, work: world.sendOnce() });
  expect(first.gateway.arrivals).toHaveLength(1);
  first.stop.abort();
  await first.ended();
  const endedAt = world.clock.now();
  world.ledger.enqueue(aPayout('q'));
  const second = await startSender({ name: 'two', journal: other, quarantineMs, work: world.sendOnce('q') });
  const afterMs = (second.gateway.arrivals[0]?.at ?? NaN) - endedAt;
  const leastMs = isSame ? INTERVAL_MS : quarantineMs;
  expect(afterMs).toBeGreaterThanOrEqual(leastMs);
  expect(afterMs).toBeLessThan(leastMs + 2_000);
});

it.each([
  ['meanwhile', 0],
  ['while nobody can reach it', 2_000],
])('a process that stops in a send objects where Redis comes back older %s', async (_, cutMs) => {
  const settings = { quarantineMs: 10_000, work: world.sendQueued() };
  const a = await startSender({ name: 'A', ...settings }, ({ gateway }) => (gateway.responseMs = 25_000));
  const { lease } = world.ledger.snapshot();
  world.ledger.enqueue(aPayout('p'));
  const withPayout = world.ledger.snapshot();
  await world.advance(2_000);
  expect(await world.stateOf('p')).toBe('sending');
  expect(a.gateway.arrivals).toHaveLength(1);
  const b = world.start({ name: 'B', ...settings });
  await world.advance(1_000);
  a.stop.abort();
  await world.advance(1_000);
  const join = cutMs === 0 ? [] : [cutFromRedis(a), cutFromRedis(b)];
  await world.advance(cutMs);
  world.ledger.restore({ ...withPayout, lease });
  for (const each of join) each();
  await world.advance(5_000);
  expect((await world.objections()).map(({ journalId }) => journalId)).toEqual(['j-A']);
  // So no other host sends it again.
  await world.advance(120_000);
  await a.ended();
  expect(b.gateway.arrivals).toHaveLength(0);
});

describe('a sender that finds that journal and ledger contradict each other', () => {
  const REFUSED = 'the ledger contradicts it';
  const work = async ({ onMismatch }: ActiveSender, end: AbortSignal) => {
    onMismatch({ kind: 'ledger', reason: REFUSED });
    await untilAborted(end);
  };

  it('records an objection once Redis is there, and keeps the lease until then', async () => {
    let isAway = true;
    let recorded = 0;
    const one = await startSender({ work }, ({ before }) => {
      before.object = () => {
        if (isAway) throw UNAVAILABLE;
        recorded += 1;
      };
    });
    await world.advance(15_000);
    expect([one.loop.status, await world.objections()]).toEqual([{ role: 'refused', reason: REFUSED }, []]);
    const { heartbeat = 0 } = (await world.lease()) ?? {};
    await world.advance(5_000);
    expect((await world.lease())?.heartbeat).toBeGreaterThan(heartbeat);

    isAway = false;
    await world.advance(1_000);
    expect(await world.objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason: REFUSED, host: 'host-one' }),
    ]);
    expect(await world.lease()).toMatchObject({ released: false });
    expect(one.errors()).toHaveLength(1);
    expect(one.said).toContain('warn cannot record the objection yet');
    expect(recorded).toBeLessThanOrEqual(2);

    // It has ended, and begins again once the ledger is adopted.
    await world.ledger.adoptLedger(
      { epoch: 1, sendCount: 0 },
      { read: [{ ...JOURNAL, journalId: 'j-one' }], givenUp: [] },
    );
    await world.advance(2 * LEASE_MS);
    expect((await world.lease())?.epoch).toBeGreaterThan(2);
  });

  it('tries no longer to record it than its grace, once it has to end', async () => {
    const one = await startSender({ work }, ({ before }) => (before.object = throwing(UNAVAILABLE)));
    one.stop.abort();
    const stoppedAt = world.clock.now();
    await one.ended();
    expect(world.clock.now() - stoppedAt).toBeGreaterThanOrEqual(10_000);
    expect(world.clock.now() - stoppedAt).toBeLessThan(12_000);
    expect(await world.objections()).toEqual([]);
  });

  it('finds it also while there is nothing to send', async () => {
    world.ledger.enqueue(aPayout('p'));
    await world.ledger.readSender();
    const older = world.ledger.snapshot();
    const one = await startSender({ work: world.sendOnce() });
    expect(one.gateway.arrivals).toHaveLength(1);
    world.ledger.restore({ ...older, lease: world.ledger.snapshot().lease });
    await world.advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused', reason: expect.stringContaining('older') });
    const reason = expect.stringContaining('came back older');
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger', reason, sends: 1 }]);
  });

  it('finds within half a minute that the record of a sent payout was deleted', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = await startSender({ work: world.sendOnce() });
    expect(await world.stateOf('p')).toBe('in_progress');
    world.ledger.redis.remove(world.ledger.connection.keys.payout('p'));
    await world.advance(30_000);
    const reason = expect.stringContaining('it does not know that payout p was sent (attempt 1)');
    expect(one.loop.status).toMatchObject({ role: 'refused', reason });
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger', reason }]);
  });

  it('says that it is the journal that lacks something, where that was deleted', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = world.start({ work: world.sendOnce() });
    await world.advance(LEASE_MS);
    one.journal.damage();
    await world.advance(5_000);
    expect(one.gateway.arrivals).toEqual([]);
    const reason = expect.stringMatching(/was damaged/);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'journal', reason }]);
    expect(one.loop.status).toMatchObject({ role: 'refused', reason });
  });
});

const LONG_MS = 50_000;
const startLong = async () => {
  world.ledger.enqueue(aPayout('p'));
  return startSender({ work: world.sendOnce() }, ({ gateway }) => (gateway.responseMs = LONG_MS));
};

it('a sender that loses the lease in a send compares ledger and journal at once, and again until its end', async () => {
  world.ledger.enqueue(aPayout('p'));
  await world.ledger.readSender();
  const older = world.ledger.snapshot();
  const one = await startLong();
  expect(one.gateway.arrivals).toHaveLength(1);
  // As many sends, so that only the journal shows it.
  const lease = { owner: 'two', epoch: 7, heartbeat: 0, released: false };
  world.ledger.restore({ ...older, lease, sendCount: 1, last: 'theirs' });
  const forgetful = world.ledger.snapshot();
  one.before.readSender = throwing(UNAVAILABLE);
  await world.advance(20_000);
  expect(await world.objections()).toEqual([]);
  expect(one.said).toContain('debug cannot compare ledger and journal yet');
  expect(one.said).not.toContain('warn cannot record the objection yet');
  delete one.before.readSender;
  await world.advance(1_000);
  const reason = expect.stringContaining('payout p was sent');
  expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger', reason, sends: 1 }]);
  expect(one.loop.status).toMatchObject({ role: 'refused' });

  world.ledger.restore(forgetful);
  expect(await world.objections()).toEqual([]);
  await world.advance(13_000);
  expect(await world.objections()).toHaveLength(1);
});

it('a sender that loses the lease in a send objects to no ledger that knows it', async () => {
  await startLong();
  const { ledger } = world;
  await ledger.acquireLease('two', await ledger.readSender(), JOURNAL, 0);
  await world.advance(LONG_MS);
  expect([await world.objections(), await world.stateOf('p')]).toEqual([[], 'unknown']);
});
