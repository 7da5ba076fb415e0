import { describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { StateChange } from '../../../src/ledger/payout-ledger.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { begin, NO_BREAKER, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

const REJECTED: SentOutcome & { kind: 'rejected' } = { kind: 'rejected', message: 'no balance' };
const UNKNOWN: SentOutcome = { kind: 'unknown', reason: 'no response in time' };
const ACCEPTED: SentOutcome = { kind: 'accepted', txhash: 'hash-1' };
const NOT_SENT = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const LEASE = { owner: 'one', epoch: 1 };

/** A payout that was sent more than once, or may have been: what is said of one attempt settles no other. */
const begun = async (payoutId = 'p'): Promise<SendAttempt> => {
  await rig.enqueue(payoutId);
  return begin(ledger, await takeLease(ledger, 'one'), payoutId);
};
const finish = async (attempt: SendAttempt, result: SentOutcome) => ledger.finishSend(attempt, result, NO_BREAKER, 0);
const stateOf = async (payoutId = 'p') => (await ledger.readPayout(payoutId))?.state;
const decide = async (change: StateChange): Promise<void> => {
  expect(await rig.change(change)).toBe('done');
};

describe('a rejection of an attempt that another timeline made', () => {
  it('leaves the one that is being sent as it is, and unknown once it gets no response', async () => {
    const mine = await begun();
    expect(await rig.adoptSend({ payoutId: 'p', attempt: 1, token: 'theirs' }, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('sending');
    await finish(mine, UNKNOWN);
    expect(await stateOf()).toBe('unknown');
  });

  it.each([1, 2])('leaves it unknown, also when told again, as attempt %i', async (attempt) => {
    await finish(await begun(), UNKNOWN);
    const theirs = { payoutId: 'p', attempt, token: 'theirs' };
    expect(await rig.adoptSend(theirs, REJECTED)).toBeUndefined();
    expect(await finish(theirs, REJECTED)).toEqual({ recorded: false });
    expect(await stateOf()).toBe('unknown');
  });

  it('says nothing, told again, of another attempt that was adopted after it', async () => {
    const [one, other] = ['one', 'other'].map((token) => ({ payoutId: 'p', attempt: 1, token }));
    if (one === undefined || other === undefined) throw new Error('two attempts');
    await rig.adoptSend(one, REJECTED);
    expect(await rig.adoptSend(other)).toMatchObject({ state: 'unknown' });
    expect(await finish(one, REJECTED)).toEqual({ recorded: false });
    expect(await stateOf()).toBe('unknown');
  });

  it.each(['another attempt was adopted', 'it was held'])(
    'says nothing, told again, after a second rejection: %s',
    async (what) => {
      const [one, two] = ['one', 'two'].map((token) => ({ payoutId: 'p', attempt: 1, token }));
      if (one === undefined || two === undefined) throw new Error('two attempts');
      for (const attempt of [one, two]) await rig.adoptSend(attempt, REJECTED);
      if (what === 'it was held') await rig.holdSendable();
      else await rig.adoptSend({ ...one, token: 'other' });
      for (const attempt of [one, two]) await finish(attempt, REJECTED);
      expect(await stateOf()).toBe('unknown');
    },
  );

  it('says nothing, told again, of a payout that was held because any may have been sent since', async () => {
    const theirs = { payoutId: 'p', attempt: 1, token: 'theirs' };
    await rig.adoptSend(theirs, REJECTED);
    expect(await rig.holdSendable()).toBe(1);
    expect(await finish(theirs, REJECTED)).toEqual({ recorded: false });
    expect(await stateOf()).toBe('unknown');
  });

  it('says nothing where the send was adopted before its outcome was known', async () => {
    await finish(await begun(), UNKNOWN);
    const theirs = { payoutId: 'p', attempt: 1, token: 'theirs' };
    await rig.adoptSend(theirs);
    expect(await rig.adoptSend(theirs, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('unknown');
  });

  it('does not keep the rejection of an attempt from counting that began after an operator had decided', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.adoptSend({ payoutId: 'p', attempt: 1, token: 'theirs' }, REJECTED);
    await decide(NOT_SENT);
    const next = await begin(ledger, LEASE, 'p');
    await finish(next, UNKNOWN);
    expect(await finish(next, REJECTED)).toEqual({ recorded: true });
    expect(await stateOf()).toBe('rejected');
  });
});

describe('a payout that turned out to be paid by an earlier attempt', () => {
  /** The first attempt was taken for not sent; the second is under way. */
  const sentTwice = async (): Promise<[first: SendAttempt, second: SendAttempt]> => {
    const first = await begun();
    await finish(first, UNKNOWN);
    await decide(NOT_SENT);
    return [first, await begin(ledger, LEASE, 'p')];
  };
  const hearOf = async (first: SendAttempt): Promise<void> => {
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
  };

  it('becomes unknown, not queued, when the present attempt is put back', async () => {
    const [first, second] = await sentTwice();
    await hearOf(first);
    await ledger.revertSend(second, 'the connection ended before its first byte');
    expect(await ledger.readPayout('p')).toMatchObject({
      state: 'unknown',
      message: 'not sent, because an earlier attempt was paid as hash-1',
    });
    expect((await ledger.readSender()).awaitingAnswer).toBe(false);
  });

  it('is not sent again once the present attempt is rejected', async () => {
    const [first, second] = await sentTwice();
    await finish(second, REJECTED);
    await hearOf(first);
    const before = await rig.dump();
    expect(await rig.change({ ...NOT_SENT, from: 'rejected' })).toBe('lateTxhash');
    expect(await rig.dump()).toEqual(before);
    await decide({ ...NOT_SENT, from: 'rejected', to: 'cancelled' });
  });

  it('is not sent again once the present attempt is unknown', async () => {
    const [first, second] = await sentTwice();
    await hearOf(first);
    await finish(second, UNKNOWN);
    expect(await rig.change(NOT_SENT)).toBe('lateTxhash');
    await decide({ ...NOT_SENT, to: 'in_progress', txhash: 'hash-1' });
  });
});

describe('an acceptance that is told again', () => {
  it('does not undo the word that the payout was not sent, for its txhash was that of another payment', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    await decide({ payoutId: 'p', from: 'in_progress', to: 'unknown', txhash: 'hash-1' });
    await decide(NOT_SENT);
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: false });
    expect(await stateOf()).toBe('queued');
  });

  it('does not undo what was decided about two payouts that got one txhash', async () => {
    await finish(await begun(), ACCEPTED);
    const other = await begun('other');
    await finish(other, ACCEPTED);
    await decide({ ...NOT_SENT, to: 'in_progress', txhash: 'hash-1' });
    await decide({ ...NOT_SENT, payoutId: 'other' });
    expect(await finish(other, ACCEPTED)).toEqual({ recorded: false });
    expect([await stateOf(), await stateOf('other')]).toEqual(['in_progress', 'queued']);
  });
});

describe('a forgotten send whose request may still be on its way', () => {
  const theirs = { payoutId: 'p', attempt: 2, token: 'theirs' };

  it('keeps a payout from being sent again that was unknown already', async () => {
    await finish(await begun(), UNKNOWN);
    expect(await rig.adoptSend(theirs, undefined, 60_000)).toBeUndefined();
    expect(await rig.change(NOT_SENT)).toBe('state');
  });

  it('does not shorten the doubt about the attempt before', async () => {
    await ledger.finishSend(await begun(), UNKNOWN, NO_BREAKER, 60_000);
    await rig.adoptSend(theirs, undefined, 0);
    expect(await rig.change(NOT_SENT)).toBe('state');
  });
});

describe('giving up sends that no journal has', () => {
  it('makes every payout unknown that is queued or rejected, and no other', async () => {
    const lease = await takeLease(ledger, 'one');
    await send(rig, lease, { payoutId: 'accepted', result: ACCEPTED });
    await send(rig, lease, { payoutId: 'rejected', result: REJECTED });
    for (const payoutId of ['one', 'two']) await rig.enqueue(payoutId);
    expect(await rig.holdSendable()).toBe(3);
    for (const payoutId of ['one', 'two', 'rejected']) {
      const held = { state: 'unknown', message: 'no journal has it' };
      expect(await ledger.readPayout(payoutId)).toMatchObject(held);
    }
    expect(await stateOf('accepted')).toBe('in_progress');
    expect(await rig.holdSendable()).toBe(0);
  });

  it('makes a payout unknown that is rejected, says the journal: it may have been retried since', async () => {
    await rig.adoptSend({ payoutId: 'p', attempt: 1, token: 'theirs' }, REJECTED);
    expect(await rig.holdSendable()).toBe(1);
    expect(await stateOf()).toBe('unknown');
  });
});
