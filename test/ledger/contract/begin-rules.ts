import { describe, expect, it } from '@jest/globals';
import type { BeginResult, BeginSend, Lease } from '../../../src/ledger/sender-ledger.js';
import { AUDIENCE, begin, JOURNAL, nextBegin, NO_BREAKER, OBJECTION, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

/** When a send may begin, and how one that was not sent is put back. */
/** Asks for `change`d instead of what would be right, and sees that a rejection leaves no trace. */
const refuse = async (lease: Lease, change: Partial<BeginSend>): Promise<BeginResult> => {
  const asked = { ...(await nextBegin(ledger, lease, change.payoutId ?? 'p')), ...change };
  const before = await rig.dump();
  const result = await ledger.beginSend(asked);
  expect(await rig.dump()).toEqual(before);
  return result;
};

const holdWithPayout = async (): Promise<Lease> => {
  await rig.enqueue('p');
  return takeLease(ledger, 'one');
};

describe('begin', () => {
  it('moves the payout to sending, counts the attempt and the send, and notes that it has no response', async () => {
    const lease = await holdWithPayout();
    rig.advance(1_500);
    expect(await ledger.beginSend(await nextBegin(ledger, lease, 'p'))).toEqual({
      kind: 'begun',
      sendCount: 1,
    });
    expect(await ledger.readPayout('p')).toMatchObject({
      state: 'sending',
      attempt: 1,
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:01.500Z',
      history: [{ to: 'queued' }, { from: 'queued', to: 'sending' }],
    });
    expect(await ledger.readSender()).toMatchObject({ sendCount: 1, awaitingAnswer: true });
  });

  it('is refused under a lease of another owner, of an older or of a newer epoch', async () => {
    const old = await holdWithPayout();
    const lease = await takeLease(ledger, 'two');
    for (const wrong of [old, { ...lease, owner: 'one' }, { ...lease, epoch: 1 }, { ...lease, epoch: 3 }]) {
      expect(await refuse(lease, { lease: wrong })).toEqual({ kind: 'lease_lost' });
    }
  });

  it('is refused where nobody holds the lease', async () => {
    await rig.enqueue('p');
    expect(await refuse({ owner: '', epoch: 0 }, {})).toEqual({ kind: 'lease_lost' });
  });

  it('is refused on a ledger with another id', async () => {
    const lease = await holdWithPayout();
    const { ledgerId } = await ledger.readSender();
    expect(await refuse(lease, { ledgerId: 'another' })).toEqual({ kind: 'other_ledger', ledgerId });
  });

  it('binds the ledger to the gateway of the first one, and is refused for any other', async () => {
    const lease = await holdWithPayout();
    expect((await ledger.readSender()).audience).toBeUndefined();
    await send(rig, lease, { payoutId: 'earlier', result: { kind: 'accepted', txhash: 't' } });
    expect((await ledger.readSender()).audience).toBe(AUDIENCE);
    const staging = 'https://staging.example#1';
    expect(await refuse(lease, { audience: staging })).toEqual({ kind: 'other_gateway', audience: AUDIENCE });
    await rig.bind(staging);
    expect(await refuse(lease, {})).toEqual({ kind: 'other_gateway', audience: staging });
    const asked = { ...(await nextBegin(ledger, lease, 'p')), audience: staging };
    expect((await ledger.beginSend(asked)).kind).toBe('begun');
  });

  it('that is refused binds nothing', async () => {
    const lease = await holdWithPayout();
    await refuse(lease, { sendCount: 2 });
    await refuse({ ...lease, epoch: 7 }, {});
    expect((await ledger.readSender()).audience).toBeUndefined();
  });

  it('is refused when the ledger saw fewer or more sends than the sender', async () => {
    const lease = await holdWithPayout();
    await send(rig, lease, { payoutId: 'earlier', result: { kind: 'accepted', txhash: 't' } });
    const { last } = await ledger.readSender();
    expect(await refuse(lease, { sendCount: 2 })).toEqual({ kind: 'sends_differ', sendCount: 1, last });
    expect(await refuse(lease, { sendCount: 0 })).toEqual({ kind: 'sends_differ', sendCount: 1, last });
  });

  it('is refused when the last send is another than the one that the sender knows, at the same number', async () => {
    const lease = await holdWithPayout();
    await send(rig, lease, { payoutId: 'earlier', result: { kind: 'accepted', txhash: 't' } });
    const { last } = await ledger.readSender();
    expect(await refuse(lease, { last: 'another' })).toEqual({ kind: 'sends_differ', sendCount: 1, last });
    expect(await refuse(lease, { last: '' })).toEqual({ kind: 'sends_differ', sendCount: 1, last });
  });

  it('is refused by a ledger that has seen fewer heartbeats than it acknowledged: it came back older', async () => {
    const lease = await holdWithPayout();
    await ledger.renewLease(lease);
    expect(await refuse(lease, { heartbeat: 2 })).toEqual({ kind: 'lease_lost' });
    expect((await ledger.beginSend({ ...(await nextBegin(ledger, lease, 'p')), heartbeat: 1 })).kind).toBe('begun');
  });

  it('is refused while a journal objects to the ledger, and resuming does not help', async () => {
    const lease = await holdWithPayout();
    await ledger.object(OBJECTION);
    expect(await refuse(lease, {})).toEqual({ kind: 'objected', journalId: 'j-two', reason: 'it forgot a send' });
    await rig.pause('holiday');
    expect(await rig.resume()).toBe('objected');
    expect(await refuse(lease, {})).toMatchObject({ kind: 'objected' });
    expect((await ledger.readSender()).objections).toEqual([OBJECTION]);
  });

  it('notes the journal that has it, and for how long its request may be on its way', async () => {
    const lease = await holdWithPayout();
    const journal = { ...JOURNAL, journalId: 'j-two', sends: 41, token: 'before' };
    const asked = { ...(await nextBegin(ledger, lease, 'p')), journal, inFlightMs: 7_000 };
    expect(await ledger.beginSend(asked)).toMatchObject({ kind: 'begun' });
    const view = await ledger.readSender();
    expect(view).toMatchObject({ last: asked.token, lastJournalId: 'j-two', inFlightMs: 7_000 });
    expect(view.journals).toEqual([JOURNAL, journal]);
  });

  it('is refused while the account is paused', async () => {
    const lease = await holdWithPayout();
    expect(await rig.pause('holiday')).toBe(true);
    expect((await ledger.readSender()).pausedReason).toBe('holiday');
    expect(await refuse(lease, {})).toEqual({ kind: 'paused', reason: 'holiday' });
    expect(await rig.resume()).toBe(true);
    expect((await ledger.readSender()).pausedReason).toBeUndefined();
    await begin(ledger, lease, 'p');
  });

  it('is refused while another payout, or the same, is sending', async () => {
    const lease = await holdWithPayout();
    await rig.enqueue('other');
    await begin(ledger, lease, 'other');
    expect(await refuse(lease, {})).toEqual({ kind: 'others_sending', payoutIds: ['other'] });
    expect(await refuse(lease, { payoutId: 'other' })).toEqual({ kind: 'others_sending', payoutIds: ['other'] });
  });

  it('is told of every payout that is sending', async () => {
    const lease = await holdWithPayout();
    for (const payoutId of ['one', 'two', 'three']) {
      await rig.enqueue(payoutId);
      await rig.change({ payoutId, from: 'queued', to: 'sending' });
    }
    expect(await refuse(lease, {})).toEqual({ kind: 'others_sending', payoutIds: ['one', 'two', 'three'] });
  });

  it('is refused for a payout that does not exist', async () => {
    const lease = await holdWithPayout();
    expect(await refuse(lease, { payoutId: 'nobody' })).toEqual({
      kind: 'wrong_state',
      state: undefined,
      attempt: 0,
    });
  });

  it('is refused for a payout that is not queued', async () => {
    const lease = await takeLease(ledger, 'one');
    await send(rig, lease, { payoutId: 'accepted', result: { kind: 'accepted', txhash: 't' } });
    await send(rig, lease, { payoutId: 'rejected', result: { kind: 'rejected', message: 'no' } });
    await send(rig, lease, { payoutId: 'unknown', result: { kind: 'unknown', reason: 'timeout' } });
    await rig.enqueue('cancelled');
    await rig.change({ payoutId: 'cancelled', from: 'queued', to: 'cancelled' });
    const states = { accepted: 'in_progress', rejected: 'rejected', unknown: 'unknown', cancelled: 'cancelled' };
    for (const [payoutId, state] of Object.entries(states)) {
      expect(await refuse(lease, { payoutId })).toMatchObject({ kind: 'wrong_state', state });
    }
  });

  it('is refused for any attempt but the next', async () => {
    const lease = await holdWithPayout();
    await ledger.revertSend(await begin(ledger, lease, 'p'), 'not sent');
    for (const attempt of [0, 1, 3]) {
      expect(await refuse(lease, { attempt })).toEqual({ kind: 'wrong_state', state: 'queued', attempt: 1 });
    }
    expect(await begin(ledger, lease, 'p')).toMatchObject({ attempt: 2 });
  });

  it('names the first thing that is wrong: ledger, lease, sends, pause, others, payout', async () => {
    const lease = await holdWithPayout();
    await rig.enqueue('other');
    await begin(ledger, lease, 'other');
    await rig.pause('holiday');
    const wrong = { ledgerId: 'x', lease: { owner: 'x', epoch: 9 }, sendCount: 9, payoutId: 'nobody' };
    expect(await refuse(lease, wrong)).toMatchObject({ kind: 'other_ledger' });
    expect(await refuse(lease, { ...wrong, ...(await known()) })).toEqual({ kind: 'lease_lost' });
    expect(await refuse(lease, { sendCount: 9 })).toMatchObject({ kind: 'sends_differ' });
    expect(await refuse(lease, {})).toMatchObject({ kind: 'paused' });
    await rig.resume();
    expect(await refuse(lease, { payoutId: 'nobody' })).toMatchObject({ kind: 'others_sending' });
  });
});

const known = async (): Promise<Pick<BeginSend, 'ledgerId'>> => {
  const { ledgerId } = await ledger.readSender();
  return { ledgerId };
};

describe('revert', () => {
  it('puts the very attempt back, keeps its number and the count of sends, and clears the flag', async () => {
    const lease = await holdWithPayout();
    await ledger.revertSend(await begin(ledger, lease, 'p'), 'no connection');
    expect(await ledger.readPayout('p')).toMatchObject({
      state: 'queued',
      attempt: 1,
      requeueCount: 0,
      history: [{}, {}, { from: 'sending', to: 'queued', reason: 'no connection' }],
    });
    expect(await ledger.readSender()).toMatchObject({ sendCount: 1, awaitingAnswer: false });
  });

  it('does nothing a second time, for another number or token, or for a payout that is not there', async () => {
    const lease = await holdWithPayout();
    const first = await begin(ledger, lease, 'p');
    await ledger.revertSend(first, 'not sent');
    const second = await begin(ledger, lease, 'p');
    const before = await rig.dump();
    for (const wrong of [
      first,
      { ...second, token: 'another' },
      { ...second, attempt: 3 },
      { ...second, payoutId: 'q' },
    ]) {
      await ledger.revertSend(wrong, 'wrong');
    }
    expect(await rig.dump()).toEqual(before);
  });

  it('uses up the number of an attempt that never began, so that a begin or a revert that comes late fits nothing', async () => {
    const lease = await holdWithPayout();
    const asked = await nextBegin(ledger, lease, 'p');
    await ledger.revertSend(asked, 'not sent');
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    expect(await ledger.beginSend(asked)).toMatchObject({ kind: 'wrong_state' });
    const next = await begin(ledger, lease, 'p');
    await ledger.revertSend(asked, 'late');
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'sending', attempt: next.attempt });
  });

  it('does nothing once the attempt has a result', async () => {
    const lease = await holdWithPayout();
    for (const kind of ['unknown', 'in_progress'] as const) {
      const payoutId = kind;
      await rig.enqueue(payoutId);
      const attempt = await begin(ledger, lease, payoutId);
      const result =
        kind === 'unknown' ? ({ kind, reason: 'r' } as const) : ({ kind: 'accepted', txhash: 't' } as const);
      await ledger.finishSend(attempt, result, NO_BREAKER, 0);
      const before = await rig.dump();
      await ledger.revertSend(attempt, 'too late');
      expect(await rig.dump()).toEqual(before);
    }
  });
});
