import { describe, expect, it } from '@jest/globals';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { begin, JOURNAL, NO_BREAKER, OBJECTION, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

/** What a new holder finds, and what an operator does with a ledger that came back older than it was. */
const begun = async (payoutId = 'p'): Promise<SendAttempt> => {
  await rig.enqueue(payoutId);
  return begin(ledger, await takeLease(ledger, 'one'), payoutId);
};

describe('recovery', () => {
  it('finds what an earlier holder left in sending, turns it into unknown, and says why', async () => {
    const attempt = await begun();
    const lease = await takeLease(ledger, 'two');
    expect(await ledger.readSending()).toEqual([attempt]);
    expect(await ledger.markSendsUnknown(lease, [attempt], 'the sender ended', 0)).toEqual(['p']);
    expect(await ledger.readPayout('p')).toMatchObject({
      state: 'unknown',
      attempt: attempt.attempt,
      message: 'the sender ended',
      history: [{}, {}, { from: 'sending', to: 'unknown', reason: 'the sender ended' }],
    });
    expect(await ledger.readSending()).toEqual([]);
    expect(await ledger.markSendsUnknown(lease, [attempt], 'again', 0)).toEqual([]);
  });

  it('knows that there was no response when the lease was lost with its epoch', async () => {
    await takeLease(ledger, 'one');
    const attempt = await begun();
    await rig.loseSender();
    const lease = await takeLease(ledger, 'two');
    expect(await ledger.readSender()).toMatchObject({ awaitingAnswer: true });
    expect(await ledger.markSendsUnknown(lease, [attempt], 'the sender ended', 0)).toEqual(['p']);
  });

  it('leaves an attempt alone that is another than the one that was seen', async () => {
    const attempt = await begun();
    const lease = await takeLease(ledger, 'two');
    const before = await rig.dump();
    for (const wrong of [
      { ...attempt, token: 'another' },
      { ...attempt, attempt: 2 },
    ]) {
      expect(await ledger.markSendsUnknown(lease, [wrong], 'r', 0)).toEqual([]);
    }
    expect(await rig.dump()).toEqual(before);
  });

  it('leaves payouts in other states alone', async () => {
    const old = await takeLease(ledger, 'one');
    const accepted = await send(rig, old, { payoutId: 'accepted', result: { kind: 'accepted', txhash: 't' } });
    const rejected = await send(rig, old, { payoutId: 'rejected', result: { kind: 'rejected', message: 'm' } });
    const lease = await takeLease(ledger, 'two');
    const before = await rig.dump();
    expect(await ledger.readSending()).toEqual([]);
    const attempts = [accepted.attempt, rejected.attempt];
    expect(await ledger.markSendsUnknown(lease, attempts, 'r', 0)).toEqual([]);
    expect(await rig.dump()).toEqual(before);
  });

  it('is for the holder only', async () => {
    const attempt = await begun();
    const old = { owner: 'one', epoch: 1 };
    const lease = await takeLease(ledger, 'two');
    const before = await rig.dump();
    for (const wrong of [old, { owner: 'one', epoch: lease.epoch }, { owner: 'two', epoch: 9 }]) {
      expect(await ledger.markSendsUnknown(wrong, [attempt], 'r', 0)).toBeUndefined();
    }
    expect(await rig.dump()).toEqual(before);
  });
});

describe('an operator who states that an unknown payout was not sent', () => {
  const NOT_SENT = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;

  it('is refused while its request may still be on its way', async () => {
    const attempt = await begun();
    await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, NO_BREAKER, 60_000);
    const before = await rig.dump();
    expect(await rig.change(NOT_SENT)).toBe('state');
    expect(await rig.dump()).toEqual(before);
    expect(await rig.change({ ...NOT_SENT, to: 'cancelled' })).toBe('done');
  });

  it('is refused as long after a recovery', async () => {
    const attempt = await begun();
    await ledger.markSendsUnknown(await takeLease(ledger, 'two'), [attempt], 'ended', 60_000);
    expect(await rig.change(NOT_SENT)).toBe('state');
  });

  it('is heard after that', async () => {
    const attempt = await begun();
    await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, NO_BREAKER, 0);
    expect(await rig.change(NOT_SENT)).toBe('done');
  });
});

describe('adoption of a send that the journal knows', () => {
  const SENT: SendAttempt = { payoutId: 'p', attempt: 2, token: 'sent' };

  it('puts a payout that the ledger forgot in as unknown', async () => {
    expect(await rig.adoptSend(SENT)).toEqual({ payoutId: 'p', state: 'unknown' });
    expect(await ledger.readPayout('p')).toMatchObject({
      state: 'unknown',
      attempt: 2,
      amount: '12.5',
      message: 'forgotten',
      history: [{ to: 'unknown', by: 'ann', reason: 'forgotten' }],
    });
    expect(await ledger.findForgottenSends([SENT])).toEqual([]);
  });

  it('puts it in as what the journal says came of it', async () => {
    expect(await rig.adoptSend(SENT, { kind: 'accepted', txhash: 'hash-1' })).toEqual({
      payoutId: 'p',
      state: 'in_progress',
    });
    const accepted = await ledger.readPayout('p');
    expect(accepted).toMatchObject({ state: 'in_progress', txhash: 'hash-1', attempt: 2 });
    expect(accepted).not.toHaveProperty('message');
    const other = { ...SENT, payoutId: 'q' };
    expect(await rig.adoptSend(other, { kind: 'rejected', message: 'no funds' })).toEqual({
      payoutId: 'q',
      state: 'rejected',
    });
    expect(await ledger.readPayout('q')).toMatchObject({ state: 'rejected', message: 'no funds' });
  });

  it.each(['queued', 'cancelled', 'rejected'] as const)('makes a payout unknown that is %s', async (state) => {
    await bring(state);
    expect(await rig.adoptSend({ ...SENT, attempt: 7 })).toEqual({ payoutId: 'p', state: 'unknown' });
    const payout = await ledger.readPayout('p');
    expect(payout).toMatchObject({ state: 'unknown', attempt: 7, message: 'forgotten' });
    expect(payout?.history.at(-1)).toMatchObject({ from: state, to: 'unknown', by: 'ann', reason: 'forgotten' });
  });

  it.each(['queued', 'cancelled', 'rejected', 'unknown'] as const)(
    'brings a payout into progress that is %s, where the journal knows the txhash',
    async (state) => {
      await bring(state);
      const adopted = await rig.adoptSend({ ...SENT, attempt: 7 }, { kind: 'accepted', txhash: 'hash-1' });
      expect(adopted).toEqual({ payoutId: 'p', state: 'in_progress' });
      expect(await ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'hash-1' });
    },
  );

  it('makes it unknown where the txhash is that of another payout', async () => {
    await send(rig, await takeLease(ledger, 'one'), {
      payoutId: 'other',
      result: { kind: 'accepted', txhash: 'hash-1' },
    });
    expect(await rig.adoptSend(SENT, { kind: 'accepted', txhash: 'hash-1' })).toMatchObject({ state: 'unknown' });
    expect(await ledger.readPayout('p')).toMatchObject({
      message: 'the gateway gave the txhash of payout other: hash-1',
    });
  });

  it('takes a rejection for no word about the other attempts of a payout that is unknown', async () => {
    await bring('unknown');
    const adopted = await rig.adoptSend({ ...SENT, attempt: 7 }, { kind: 'rejected', message: 'no' });
    expect(adopted).toBeUndefined();
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'unknown', attempt: 7 });
  });

  it('notes the payment of a payout that was paid by another attempt as a late one', async () => {
    await bring('in_progress');
    const adopted = await rig.adoptSend({ ...SENT, attempt: 7 }, { kind: 'accepted', txhash: 'hash-7' });
    expect(adopted).toBeUndefined();
    expect(await ledger.readPayout('p')).toMatchObject({ txhash: 't', lateTxhash: 'hash-7' });
  });

  it('distinguishes a number that was used up from a send of the same number', async () => {
    await bring('queued');
    const usedUp = { payoutId: 'p', attempt: 1, token: 'used-up' };
    await ledger.revertSend(usedUp, 'its begin got no reply');
    const sent = { payoutId: 'p', attempt: 1, token: 'sent' };
    expect(await ledger.findForgottenSends([usedUp, sent])).toEqual([{ send: sent, state: 'queued' }]);
    expect(await rig.adoptSend(sent)).toMatchObject({ state: 'unknown' });
    expect(await ledger.findForgottenSends([usedUp, sent])).toEqual([]);
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'unknown', attempt: 1 });
  });

  it('distinguishes sends of the same payout, number and epoch that two timelines made', async () => {
    const attempt = await begun();
    const other = { ...attempt, token: 'of-another-timeline' };
    expect(await ledger.findForgottenSends([attempt, other])).toEqual([{ send: other, state: 'sending' }]);
    await ledger.revertSend(other, 'not sent');
    expect((await ledger.readPayout('p'))?.state).toBe('sending');
  });

  it('notes the attempt of a payout that was sent before, so that its late response still counts', async () => {
    await bring('unknown');
    const late = { ...SENT, attempt: 7 };
    expect(await rig.adoptSend(late)).toBeUndefined();
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'unknown', attempt: 7 });
    expect(await ledger.finishSend(late, { kind: 'accepted', txhash: 't' }, NO_BREAKER, 0)).toEqual({
      recorded: true,
    });
  });

  it.each(['sending', 'in_progress', 'rejected', 'unknown'] as const)(
    'changes nothing when the ledger knows of it: %s',
    async (state) => {
      const attempt = await bring(state);
      const before = await rig.dump();
      expect(await rig.adoptSend(attempt)).toBeUndefined();
      expect(await rig.dump()).toEqual(before);
    },
  );

  it.each(['sending', 'unknown'] as const)('records the outcome of a known send that is %s', async (state) => {
    const attempt = await bring(state);
    const adopted = await rig.adoptSend(attempt, { kind: 'accepted', txhash: 'hash-1' });
    expect(adopted).toEqual({ payoutId: 'p', state: 'in_progress' });
    expect(await ledger.readPayout('p')).toMatchObject({ txhash: 'hash-1', attempt: 1 });
  });

  const bring = async (
    state: 'queued' | 'cancelled' | 'sending' | 'in_progress' | 'rejected' | 'unknown',
  ): Promise<SendAttempt> => {
    const lease = await takeLease(ledger, 'one');
    await rig.enqueue('p');
    const none = { payoutId: 'p', attempt: 0, token: '' };
    if (state === 'cancelled') await rig.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    if (state === 'queued' || state === 'cancelled') return none;
    const attempt = await begin(ledger, lease, 'p');
    if (state === 'sending') return attempt;
    const results = {
      in_progress: { kind: 'accepted', txhash: 't' },
      rejected: { kind: 'rejected', message: 'm' },
      unknown: { kind: 'unknown', reason: 'r' },
    } as const;
    await ledger.finishSend(attempt, results[state], NO_BREAKER, 0);
    return attempt;
  };
});

describe('adoption of a ledger', () => {
  it('raises epoch and sends above the journal, ends the lease, and notes that a request may be on its way', async () => {
    const old = await takeLease(ledger, 'one');
    const raised = await rig.adoptLedger({ epoch: 5, sendCount: 9 });
    expect(raised).toMatchObject({ epoch: 6, sendCount: 10, objections: 0 });
    expect(await ledger.readSender()).toMatchObject({
      lease: { owner: '', epoch: 6, heartbeat: 0, released: false },
      sendCount: 10,
      last: raised.token,
      awaitingAnswer: true,
    });
    expect(await ledger.renewLease(old)).toBeUndefined();
    expect(await takeLease(ledger, 'two')).toEqual({ owner: 'two', epoch: 7 });
  });

  it('ends the objections of the journals that were read or given up, and no other', async () => {
    const objections = ['j-one', 'j-two', 'j-three'].map((journalId) => ({ ...OBJECTION, journalId }));
    for (const objection of objections) await ledger.object(objection);
    await takeLease(ledger, 'one');
    const read = { ...JOURNAL, sends: 9, token: 'ninth' };
    const raised = await rig.adoptLedger({ epoch: 1, sendCount: 9 }, { read: [read], givenUp: ['j-three'] });
    expect(raised.objections).toBe(1);
    const view = await ledger.readSender();
    expect(view.objections).toEqual([objections[1]]);
    expect(view.journals).toEqual([read]);
  });

  it('keeps the flag though an attempt of before is put back', async () => {
    const attempt = await begun();
    await rig.adoptLedger({ epoch: 5, sendCount: 9 });
    await ledger.revertSend(attempt, 'it was not sent');
    expect((await ledger.readPayout('p'))?.state).toBe('queued');
    expect((await ledger.readSender()).awaitingAnswer).toBe(true);
  });

  it('never lowers what the ledger has', async () => {
    const lease = await takeLease(ledger, 'one');
    await send(rig, lease, { payoutId: 'p', result: { kind: 'accepted', txhash: 't' } });
    expect(await rig.adoptLedger({ epoch: 0, sendCount: 0 })).toMatchObject({ epoch: 2, sendCount: 2 });
  });

  it('works on an empty ledger, and the next send clears the flag', async () => {
    expect(await rig.adoptLedger({ epoch: 3, sendCount: 4 })).toMatchObject({ epoch: 4, sendCount: 5 });
    const lease = await takeLease(ledger, 'one');
    await send(rig, lease, { payoutId: 'p', result: { kind: 'accepted', txhash: 't' } });
    expect(await ledger.readSender()).toMatchObject({ sendCount: 6, awaitingAnswer: false });
  });
});

describe('an objection', () => {
  it('stands once for each journal, with its newest reason', async () => {
    await ledger.object(OBJECTION);
    await ledger.object({ ...OBJECTION, at: OBJECTION.at + 5 });
    expect((await ledger.readSender()).objections).toEqual([OBJECTION]);
    const newer = { ...OBJECTION, reason: 'it forgot more', at: OBJECTION.at + 5 };
    await ledger.object(newer);
    expect((await ledger.readSender()).objections).toEqual([newer]);
  });
});
