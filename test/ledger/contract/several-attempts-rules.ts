import { describe, expect, it } from '@jest/globals';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import {
  ACCEPTED,
  beginOne,
  begun,
  change,
  enqueue,
  enter,
  finish,
  read,
  REJECTED,
  rig,
  sender,
  stateOf,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';
import { HOLD, NO_BREAKER } from './ledger-rig.js';

/** A payout that was sent more than once, or may have been: what is said of one attempt settles no other. */

const NOT_SENT = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const IGNORED = { recorded: false };

const attemptOf = (token: string, attempt = 1): SendAttempt => ({ payoutId: 'p', attempt, token });
const THEIRS = attemptOf('theirs');

describe('a rejection of an attempt that another timeline made', () => {
  it('leaves the one that is being sent as it is, and unknown once it gets no response', async () => {
    const mine = await begun();
    expect(await rig.adoptSend(THEIRS, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('sending');
    await finish(mine, UNKNOWN);
    expect(await stateOf()).toBe('unknown');
  });

  it.each([1, 2])('leaves it unknown, also when told again, as attempt %i', async (attempt) => {
    await finish(await begun(), UNKNOWN);
    const theirs = attemptOf('theirs', attempt);
    expect(await rig.adoptSend(theirs, REJECTED)).toBeUndefined();
    expect(await finish(theirs, REJECTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('unknown');
  });

  it.each([
    ['another attempt was adopted', [THEIRS], async () => rig.adoptSend(attemptOf('other'))],
    ['it was held, because any may have been sent since', [THEIRS], async () => rig.holdSendable()],
    ['a second one, and another', [THEIRS, attemptOf('two')], async () => rig.adoptSend(attemptOf('other'))],
    ['a second one, and it was held', [THEIRS, attemptOf('two')], async () => rig.holdSendable()],
  ])('says nothing, told again, after %s', async (_, attempts, happens) => {
    for (const attempt of attempts) await rig.adoptSend(attempt, REJECTED);
    expect([{ payoutId: 'p', state: 'unknown' }, 1]).toContainEqual(await happens());
    for (const attempt of attempts) expect(await finish(attempt, REJECTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('unknown');
  });

  it('says nothing where the send was adopted before its outcome was known', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.adoptSend(THEIRS);
    expect(await rig.adoptSend(THEIRS, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('unknown');
  });

  it('does not keep the rejection of an attempt from counting that began after an operator had decided', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.adoptSend(THEIRS, REJECTED);
    await change('p', 'unknown', 'queued');
    const next = await beginOne('p');
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
    await change('p', 'unknown', 'queued');
    return [first, await beginOne('p')];
  };

  it('becomes unknown, not queued, when the present attempt is put back', async () => {
    const [first, second] = await sentTwice();
    await finish(first, ACCEPTED);
    await sender.revertSend(second, 'the connection ended before its first byte');
    const message = 'not sent, because an earlier attempt was paid as h';
    expect(await read()).toMatchObject({ state: 'unknown', message });
    expect((await sender.readSender()).awaitingAnswer).toBe(false);
  });

  it.each([
    ['rejected', REJECTED, 'cancelled', {}],
    ['unknown', UNKNOWN, 'in_progress', { txhash: 'h' }],
  ] as const)('is not sent again once the present attempt is %s', async (from, result, to, more) => {
    const [first, second] = await sentTwice();
    if (from === 'rejected') await finish(second, result);
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    if (from === 'unknown') await finish(second, result);
    expect(await unchanged(async () => rig.change({ ...NOT_SENT, from }))).toBe('lateTxhash');
    await change('p', from, to, more);
  });
});

describe('an acceptance that is told again', () => {
  it('does not undo the word that the payout was not sent, for its txhash was that of another payment', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    await change('p', 'in_progress', 'unknown', { txhash: 'h' });
    await change('p', 'unknown', 'queued');
    expect(await finish(attempt, ACCEPTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('queued');
  });

  it('does not undo what was decided about two payouts that got one txhash', async () => {
    await finish(await begun(), ACCEPTED);
    const other = await begun('other');
    await finish(other, ACCEPTED);
    await change('p', 'unknown', 'in_progress', { txhash: 'h' });
    await change('other', 'unknown', 'queued');
    expect(await finish(other, ACCEPTED)).toEqual(IGNORED);
    expect([await stateOf(), await stateOf('other')]).toEqual(['in_progress', 'queued']);
  });
});

describe('a request that may still be on its way', () => {
  it('keeps an unknown payout from being sent again for so long, also after a recovery, but not from being cancelled', async () => {
    await sender.finishSend(await begun(), UNKNOWN, NO_BREAKER, 60_000);
    await sender.markSendsUnknown({ owner: 'one', epoch: 2 }, [await begun('q')], 'ended', 60_000);
    for (const payoutId of ['p', 'q']) {
      expect(await unchanged(async () => rig.change({ ...NOT_SENT, payoutId }))).toBe('state');
      await change(payoutId, 'unknown', 'cancelled');
    }
    await finish(await begun('after'), UNKNOWN);
    await change('after', 'unknown', 'queued');
  });

  it('keeps a payout from being sent again that was unknown already, where it is of a forgotten send', async () => {
    await finish(await begun(), UNKNOWN);
    expect(await rig.adoptSend(attemptOf('theirs', 2), undefined, 60_000)).toBeUndefined();
    expect(await rig.change(NOT_SENT)).toBe('state');
  });

  it('is doubted no shorter because of a forgotten send', async () => {
    await sender.finishSend(await begun(), UNKNOWN, NO_BREAKER, 60_000);
    await rig.adoptSend(attemptOf('theirs', 2), undefined, 0);
    expect(await rig.change(NOT_SENT)).toBe('state');
  });
});

describe('giving up sends that no journal has', () => {
  it('makes every payout unknown that is queued, held or rejected, and no other', async () => {
    await enter('in_progress', 'accepted');
    await enter('rejected', 'rejected');
    await enqueue('held', 'one', 'two');
    await sender.holdPayout('held', 0, HOLD);
    await rig.adoptSend(THEIRS, REJECTED);
    expect(await rig.holdSendable()).toBe(5);
    for (const payoutId of ['one', 'two', 'rejected', 'held', 'p']) {
      const payout = await read(payoutId);
      expect(payout).toMatchObject({ state: 'unknown', message: 'no journal has it' });
      expect(payout).not.toHaveProperty('held');
    }
    expect(await stateOf('accepted')).toBe('in_progress');
    expect(await rig.holdSendable()).toBe(0);
  });
});
