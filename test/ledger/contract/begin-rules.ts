import { expect, it } from '@jest/globals';
import type { LeaseView, BeginResult, BeginSend, Lease } from '../../../src/ledger/sender-ledger.js';
import {
  ACCEPTED,
  AUDIENCE,
  begin,
  begun,
  enqueue,
  enter,
  finish,
  JOURNAL,
  keys,
  nextBegin,
  OBJECTION,
  read,
  redis,
  rig,
  sender,
  takeLease,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';

const readLease = async () => (await sender.readSender()).lease;
const acquire = async (owner: string, seen: object = {}, journal = JOURNAL, forgetBefore = 0) =>
  sender.acquireLease(owner, { ...(await sender.readSender()), ...seen }, journal, forgetBefore);

it('a lease is absent at first, and goes to one process that saw that', async () => {
  expect(await sender.renewLease({ owner: 'one', epoch: 0 })).toBeUndefined();
  expect(await readLease()).toBeUndefined();
  const seen = { lease: { owner: 'one', epoch: 1, heartbeat: 0, released: false } };
  expect(await unchanged(async () => acquire('two', seen))).toBeUndefined();
  expect(await acquire('one')).toBe(1);
  expect(await readLease()).toEqual(seen.lease);
  const view = await sender.readSender();
  const epochs = await Promise.all(['two', 'three', 'four'].map(async (owner) => acquire(owner, view)));
  expect(epochs.filter((epoch) => epoch !== undefined)).toEqual([2]);
});

it.each<[string, LeaseView | undefined]>([
  ['absent', undefined],
  ['another owner', { owner: 'other', epoch: 1, heartbeat: 1, released: false }],
  ['another epoch', { owner: 'one', epoch: 2, heartbeat: 1, released: false }],
  ['an earlier heartbeat', { owner: 'one', epoch: 1, heartbeat: 0, released: false }],
  ['a later heartbeat', { owner: 'one', epoch: 1, heartbeat: 2, released: false }],
  ['given back', { owner: 'one', epoch: 1, heartbeat: 1, released: true }],
])('a lease is not given to one who saw it as %s when it is not', async (_, lease) => {
  await sender.renewLease(await takeLease(sender, 'one'));
  expect(await unchanged(async () => acquire('two', { lease }))).toBeUndefined();
});

it('a lease is not given to one who saw other sends', async () => {
  await takeLease(sender, 'one');
  const { sendCount, last } = await sender.readSender();
  await finish(await begun(), ACCEPTED);
  for (const seen of [{ sendCount, last }, { sendCount: 2 }, { last: 'another' }, { last: '' }]) {
    expect(await acquire('two', seen)).toBeUndefined();
  }
  expect(await acquire('two')).toBe(3);
});

it('a lease forgets journals that were not used since a time', async () => {
  const [first, second, third] = [100, 300, 50].map((at) => ({ ...JOURNAL, journalId: `j-${at}`, at }));
  await acquire('one', {}, first, 0);
  await acquire('two', {}, second, 100);
  expect((await sender.readSender()).journals).toHaveLength(2);
  await acquire('three', {}, third, 101);
  expect((await sender.readSender()).journals).toEqual([second, third]);
});

it('a lease raises the epoch each time it is taken, and its heartbeat starts from zero', async () => {
  await sender.renewLease(await takeLease(sender, 'one'));
  expect(await takeLease(sender, 'one')).toEqual({ owner: 'one', epoch: 2 });
  expect(await takeLease(sender, 'two')).toEqual({ owner: 'two', epoch: 3 });
  expect(await readLease()).toEqual({ owner: 'two', epoch: 3, heartbeat: 0, released: false });
});

it('a lease is renewed and given back by its holder only, and then gives no rights', async () => {
  const old = await takeLease(sender, 'one');
  expect(await sender.renewLease(old)).toMatchObject({ heartbeat: 1, isObjectedTo: false, arrivesForMs: 0 });
  expect((await readLease())?.heartbeat).toBe(1);
  const held = await takeLease(sender, 'two');
  for (const wrong of [old, { owner: 'two', epoch: 1 }, { owner: 'one', epoch: 2 }]) {
    expect(await sender.renewLease(wrong)).toBeUndefined();
    await sender.releaseLease(wrong);
  }
  expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: false });
  await sender.releaseLease(held);
  expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: true });
  await enqueue('p');
  expect(await sender.renewLease(held)).toBeUndefined();
  expect(await sender.beginSend(await nextBegin(sender, held, 'p'))).toEqual({ kind: 'lease_lost' });
  expect(await sender.markSendsUnknown(held, [], 'r', 0)).toBeUndefined();
  const next = await takeLease(sender, 'three');
  expect(await readLease()).toEqual({ owner: 'three', epoch: 3, heartbeat: 0, released: false });
  await sender.object(OBJECTION);
  expect(await sender.renewLease(next)).toMatchObject({ heartbeat: 1, isObjectedTo: true, arrivesForMs: 0 });
  expect(await redis.hget(keys.sender, 'released')).toBe('0');
});

it('a heartbeat sees which ledger it is, its sends and acts, and what is being sent', async () => {
  const lease = await holdWithPayout();
  await enqueue('q');
  const { ledgerId } = await sender.readSender();
  const glance = async () => (await sender.renewLease(lease))?.glance;
  expect(await glance()).toEqual({ ledgerId, sendCount: 0, last: '', acts: 0, keptActs: 0, sending: 0 });
  const asked = await nextBegin(sender, lease, 'p');
  await sender.beginSend(asked);
  await rig.pause('holiday');
  const seen = { ledgerId, sendCount: 1, last: asked.token, acts: 1, sending: 1 };
  expect(await glance()).toEqual({ ...seen, keptActs: 0 });
  await sender.noteKept(1, []);
  expect(await glance()).toEqual({ ...seen, keptActs: 1 });
});

/** Asks for `change`d instead of what would be right, and sees that a rejection leaves no trace. */
async function refuse(lease: Lease, changed: Partial<BeginSend> = {}): Promise<BeginResult> {
  const asked = { ...(await nextBegin(sender, lease, changed.payoutId ?? 'p')), ...changed };
  return unchanged(async () => sender.beginSend(asked));
}

async function holdWithPayout(): Promise<Lease> {
  await enqueue('p');
  return takeLease(sender, 'one');
}

async function holdAfterSend(): Promise<Lease> {
  const lease = await holdWithPayout();
  await enqueue('earlier');
  await finish(await begin(sender, lease, 'earlier'), ACCEPTED);
  return lease;
}

it('begin moves the payout to sending, counts it, and notes its journal and that no response came', async () => {
  const lease = await holdWithPayout();
  rig.advance(1_500);
  const journal = { ...JOURNAL, journalId: 'j-two', sends: 41, token: 'before' };
  const asked = { ...(await nextBegin(sender, lease, 'p')), journal, inFlightMs: 7_000 };
  expect(await sender.beginSend(asked)).toEqual({ kind: 'begun', sendCount: 1, acts: 0, isIndexed: true });
  expect(await read()).toMatchObject({
    ...{ state: 'sending', attempt: 1 },
    ...{ createdAt: '2030-01-01T00:00:00.000Z', updatedAt: '2030-01-01T00:00:01.500Z' },
    history: [{ to: 'queued' }, { from: 'queued', to: 'sending' }],
  });
  expect(await sender.readSender()).toMatchObject({
    ...{ sendCount: 1, awaitingAnswer: true, last: asked.token, lastJournalId: 'j-two', inFlightMs: 7_000 },
    journals: [JOURNAL, journal],
  });
});

it('begin is refused under a lease of another owner or epoch, or of nobody', async () => {
  await enqueue('p');
  expect(await refuse({ owner: '', epoch: 0 })).toEqual({ kind: 'lease_lost' });
  const old = await takeLease(sender, 'one');
  const lease = await takeLease(sender, 'two');
  for (const wrong of [old, { ...lease, owner: 'one' }, { ...lease, epoch: 1 }, { ...lease, epoch: 3 }]) {
    expect(await refuse(lease, { lease: wrong })).toEqual({ kind: 'lease_lost' });
  }
});

it('begin binds the ledger to the gateway of the first one only; a refused one binds nothing', async () => {
  const lease = await holdWithPayout();
  await refuse(lease, { sendCount: 2 });
  expect((await sender.readSender()).audience).toBeUndefined();
  await enqueue('q');
  await finish(await begin(sender, lease, 'q'), ACCEPTED);
  expect((await sender.readSender()).audience).toBe(AUDIENCE);
  const staging = 'https://staging.example#1';
  expect(await refuse(lease, { audience: staging })).toEqual({ kind: 'other_gateway', audience: AUDIENCE });
  await rig.bind(staging);
  expect(await refuse(lease)).toEqual({ kind: 'other_gateway', audience: staging });
  const asked = { ...(await nextBegin(sender, lease, 'p')), audience: staging };
  expect((await sender.beginSend(asked)).kind).toBe('begun');
});

it('begin is refused on another ledger, and one that saw other sends than the sender', async () => {
  const lease = await holdAfterSend();
  const { ledgerId, last } = await sender.readSender();
  expect(await refuse(lease, { ledgerId: 'another' })).toEqual({ kind: 'other_ledger', ledgerId });
  for (const wrong of [{ sendCount: 2 }, { sendCount: 0 }, { last: 'another' }, { last: '' }]) {
    expect(await refuse(lease, wrong)).toEqual({ kind: 'sends_differ', sendCount: 1, last, acts: 0 });
  }
});

it('begin is refused by a ledger that counts fewer acts of people, and tells how many it counts', async () => {
  const lease = await holdWithPayout();
  await enqueue('q');
  await rig.pause('holiday');
  await rig.resume();
  const { acts } = await sender.readSender();
  expect(acts).toBeGreaterThan(0);
  const differs = { kind: 'sends_differ', sendCount: 0, last: '', acts };
  expect(await refuse(lease, { acts: acts + 1 })).toEqual(differs);
  const asked = await nextBegin(sender, lease, 'p');
  const begun = { kind: 'begun', sendCount: 1, acts, isIndexed: true };
  expect(await sender.beginSend({ ...asked, acts: acts - 1 })).toEqual(begun);
});

it('begin is refused by a ledger that saw fewer heartbeats than it acknowledged: it came back older', async () => {
  const lease = await holdWithPayout();
  await sender.renewLease(lease);
  expect(await refuse(lease, { heartbeat: 2 })).toEqual({ kind: 'lease_lost' });
  expect((await sender.beginSend({ ...(await nextBegin(sender, lease, 'p')), heartbeat: 1 })).kind).toBe('begun');
});

it('begin is refused while a journal objects to the ledger, and resuming does not help', async () => {
  const lease = await holdWithPayout();
  await sender.object(OBJECTION);
  expect(await refuse(lease)).toEqual({ kind: 'objected', journalId: 'j-two', reason: 'it forgot a send' });
  await rig.pause('holiday');
  expect(await rig.resume()).toBe('objected');
  expect(await refuse(lease)).toMatchObject({ kind: 'objected' });
  expect((await sender.readSender()).objections).toEqual([OBJECTION]);
});

it('begin is refused while the account is paused', async () => {
  const lease = await holdWithPayout();
  expect(await rig.pause('holiday')).toBe(true);
  expect((await sender.readSender()).pausedReason).toBe('holiday');
  expect(await refuse(lease)).toEqual({ kind: 'paused', reason: 'holiday' });
  expect([await rig.resume(), await rig.resume()]).toEqual([true, false]);
  expect((await sender.readSender()).pausedReason).toBeUndefined();
  await begin(sender, lease, 'p');
});

it('begin is refused while others, or the same, are sending, and told of each', async () => {
  const lease = await holdWithPayout();
  await enter('sending', 'one', 'two', 'three');
  for (const payoutId of ['p', 'one']) {
    expect(await refuse(lease, { payoutId })).toEqual({
      kind: 'others_sending',
      payoutIds: ['one', 'two', 'three'],
    });
  }
});

it('begin is refused for a payout that is not queued, and for any attempt but the next', async () => {
  const lease = await holdWithPayout();
  const none = { kind: 'wrong_state', state: undefined, attempt: 0 };
  expect(await refuse(lease, { payoutId: 'nobody' })).toEqual(none);
  for (const state of ['in_progress', 'rejected', 'unknown', 'cancelled'] as const) {
    await enter(state, state);
    expect(await refuse(lease, { payoutId: state })).toMatchObject({ kind: 'wrong_state', state });
  }
  await sender.revertSend(await begin(sender, lease, 'p'), 'not sent');
  for (const attempt of [0, 1, 3]) {
    expect(await refuse(lease, { attempt })).toEqual({ kind: 'wrong_state', state: 'queued', attempt: 1 });
  }
  expect(await begin(sender, lease, 'p')).toMatchObject({ attempt: 2 });
});

it('begin names the first thing that is wrong: ledger, lease, sends, pause, others, payout', async () => {
  const lease = await holdWithPayout();
  await enqueue('other');
  await begin(sender, lease, 'other');
  await rig.pause('holiday');
  const { ledgerId } = await sender.readSender();
  const wrong = { ledgerId: 'x', lease: { owner: 'x', epoch: 9 }, sendCount: 9, payoutId: 'nobody' };
  expect(await refuse(lease, wrong)).toMatchObject({ kind: 'other_ledger' });
  expect(await refuse(lease, { ...wrong, ledgerId })).toEqual({ kind: 'lease_lost' });
  expect(await refuse(lease, { sendCount: 9 })).toMatchObject({ kind: 'sends_differ' });
  expect(await refuse(lease)).toMatchObject({ kind: 'paused' });
  await rig.resume();
  expect(await refuse(lease, { payoutId: 'nobody' })).toMatchObject({ kind: 'others_sending' });
});

it('revert puts the attempt back, keeps its number and the count of sends, and clears the flag', async () => {
  await sender.revertSend(await begun(), 'no connection');
  expect(await read()).toMatchObject({
    ...{ state: 'queued', attempt: 1, requeueCount: 0 },
    history: [{}, {}, { from: 'sending', to: 'queued', reason: 'no connection' }],
  });
  expect(await sender.readSender()).toMatchObject({ sendCount: 1, awaitingAnswer: false });
});

it('revert does nothing a second time, or for another number, token or payout', async () => {
  const lease = await holdWithPayout();
  const first = await begin(sender, lease, 'p');
  await sender.revertSend(first, 'not sent');
  const second = await begin(sender, lease, 'p');
  await unchanged(async () => {
    for (const wrong of [{ token: 'another' }, { attempt: 3 }, { payoutId: 'q' }, first]) {
      await sender.revertSend({ ...second, ...wrong }, 'wrong');
    }
  });
});

it('revert uses up the number of an attempt that never began: a late begin or revert fits nothing', async () => {
  const lease = await holdWithPayout();
  const asked = await nextBegin(sender, lease, 'p');
  await sender.revertSend(asked, 'not sent');
  expect(await read()).toMatchObject({ state: 'queued', attempt: 1 });
  expect(await sender.beginSend(asked)).toMatchObject({ kind: 'wrong_state' });
  const next = await begin(sender, lease, 'p');
  await sender.revertSend(asked, 'late');
  expect(await read()).toMatchObject({ state: 'sending', attempt: next.attempt });
});

it.each([UNKNOWN, ACCEPTED])('revert does nothing once the attempt has a result: $kind', async (result) => {
  const attempt = await begun();
  await finish(attempt, result);
  await unchanged(async () => sender.revertSend(attempt, 'too late'));
});
