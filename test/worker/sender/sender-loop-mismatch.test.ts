import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { ActiveSender } from '../../../src/worker/sender/send-until-decided.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { LoopWorld, type LoopRig } from '../support/loop-rig.js';
import { LEASE_MS, throwing, UNAVAILABLE } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});
const REFUSED = 'the ledger contradicts it';
const refuse = async ({ onMismatch }: ActiveSender, end: AbortSignal): Promise<void> => {
  onMismatch({ kind: 'ledger', reason: REFUSED });
  await untilAborted(end);
};

describe('a sender that finds that journal and ledger contradict each other', () => {
  it('records an objection, however long Redis is unavailable, and keeps the lease until then', async () => {
    const one = world.make({ work: refuse });
    let isAway = true;
    one.before.object = () => {
      if (isAway) throw UNAVAILABLE;
    };
    one.start();
    await world.advance(LEASE_MS + 20_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: REFUSED });
    expect(await world.objections()).toEqual([]);
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
  });

  it('tries no longer to record it than its grace, once it has to end', async () => {
    const one = world.make({ work: refuse });
    one.before.object = throwing(UNAVAILABLE);
    one.start();
    await world.advance(LEASE_MS + 2_000);
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
    const one = world.start({ work: world.sendOnce() });
    await world.advance(LEASE_MS + 5_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    const { lease } = await world.ledger.readSender();
    world.ledger.restore({ ...older, lease });
    await world.advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused', reason: expect.stringContaining('older') });
    expect(await world.objections()).toMatchObject([
      { journalId: 'j-one', kind: 'ledger', reason: expect.stringContaining('came back older'), sends: 1 },
    ]);
  });

  it('says that it is the journal that lacks something, where that was deleted', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = world.start({ work: world.sendOnce() });
    await world.advance(LEASE_MS);
    one.journal.damage();
    await world.advance(5_000);
    expect(one.gateway.arrivals).toEqual([]);
    expect(await world.objections()).toMatchObject([
      { journalId: 'j-one', kind: 'journal', reason: expect.stringMatching(/was damaged/) },
    ]);
    expect(one.loop.status).toMatchObject({ role: 'refused', reason: expect.stringMatching(/was damaged/) });
  });
});

describe('a sender whose outcome cannot be recorded', () => {
  it('says so in its status while Redis refuses it, and is a sender again once it could be', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = world.make({ work: world.sendOnce() });
    let failure: Error | undefined = new Error('OOM command not allowed');
    one.before.finishSend = () => {
      if (failure !== undefined) throw failure;
    };
    one.start();
    await world.advance(LEASE_MS + 10_000);
    expect(one.loop.status).toEqual({
      role: 'refused',
      reason: 'cannot record the outcome, payout p: OOM command not allowed',
    });
    expect(one.errors()).toContain('error cannot record the outcome: Redis refuses it');
    failure = UNAVAILABLE;
    await world.advance(5_000);
    failure = undefined;
    await world.advance(3_000);
    expect(await world.stateOf('p')).toBe('in_progress');
    expect(one.loop.status).toEqual({ role: 'sender', epoch: 1 });
  });
});

describe('a sender that loses the lease while a send is under way', () => {
  const LONG_MS = 50_000;

  const loseLease = async (): Promise<LoopRig> => {
    world.ledger.enqueue(aPayout('p'));
    await world.ledger.readSender();
    const older = world.ledger.snapshot();
    const one = world.make({ work: world.sendOnce() });
    one.gateway.responseMs = LONG_MS;
    one.start();
    await world.advance(LEASE_MS + 5_000);
    expect(one.gateway.arrivals).toHaveLength(1);
    // As many sends, so that only the journal shows it.
    const lease = { owner: 'two', epoch: 7, heartbeat: 0, released: false };
    world.ledger.restore({ ...older, lease, sendCount: 1, last: 'theirs' });
    return one;
  };

  it('compares ledger and journal at once, not only when the response is there', async () => {
    const one = await loseLease();
    await world.advance(3_000);
    expect(await world.objections()).toMatchObject([
      { journalId: 'j-one', kind: 'ledger', reason: expect.stringContaining('payout p was sent'), sends: 1 },
    ]);
    expect(one.loop.status).toMatchObject({ role: 'refused' });
  });

  it('objects again where the ledger forgets the objection while the send is still in progress', async () => {
    await loseLease();
    const forgetful = world.ledger.snapshot();
    await world.advance(3_000);
    expect(await world.objections()).toHaveLength(1);
    world.ledger.restore(forgetful);
    expect(await world.objections()).toEqual([]);
    await world.advance(3_000);
    expect(await world.objections()).toHaveLength(1);
  });

  it('tries until Redis can be asked', async () => {
    const one = await loseLease();
    one.before.readSender = throwing(UNAVAILABLE);
    await world.advance(20_000);
    expect(await world.objections()).toEqual([]);
    delete one.before.readSender;
    await world.advance(1_000);
    expect(await world.objections()).toHaveLength(1);
  });

  it('objects to nothing where the ledger knows its send', async () => {
    world.ledger.enqueue(aPayout('p'));
    const one = world.make({ work: world.sendOnce() });
    one.gateway.responseMs = LONG_MS;
    one.start();
    await world.advance(LEASE_MS + 5_000);
    const { ledger } = world;
    await ledger.acquireLease('two', await ledger.readSender(), JOURNAL, 0);
    await world.advance(LONG_MS);
    expect(await world.objections()).toEqual([]);
    expect(await world.stateOf('p')).toBe('in_progress');
  });
});
