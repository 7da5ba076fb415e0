import { describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { begin, NO_BREAKER, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

const ACCEPTED: SentOutcome = { kind: 'accepted', txhash: 'hash-1' };
const REJECTED: SentOutcome = { kind: 'rejected', message: 'too little' };
const UNKNOWN: SentOutcome = { kind: 'unknown', reason: 'no response in time' };

const HEX = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

/** Two spellings of one transaction each. */
const SAME_TRANSACTION = [
  [HEX, HEX.toUpperCase()],
  [HEX.toUpperCase(), HEX],
  [`0x${HEX}`, `0x${HEX.toUpperCase()}`],
  [`0X${HEX}`, HEX],
  ['0xabc', '0xABC'],
] as const;

/** What is recorded of an attempt: once, only by that attempt, and late only what is better than not knowing. */
const begun = async (payoutId = 'p'): Promise<SendAttempt> => {
  await rig.enqueue(payoutId);
  return begin(ledger, await takeLease(ledger, 'one'), payoutId);
};
const finish = async (attempt: SendAttempt, result: SentOutcome) => ledger.finishSend(attempt, result, NO_BREAKER, 0);
const readState = async (payoutId = 'p') => (await ledger.readPayout(payoutId))?.state;
const isAwaitingAnswer = async () => (await ledger.readSender()).awaitingAnswer;

/** Sees that nothing is recorded and nothing changes. */
const ignores = async (attempt: SendAttempt, result: SentOutcome): Promise<void> => {
  const before = await rig.dump();
  expect(await finish(attempt, result)).toEqual({ recorded: false });
  expect(await rig.dump()).toEqual(before);
};

describe('finish', () => {
  it('records an acceptance with its txhash', async () => {
    expect(await finish(await begun(), ACCEPTED)).toEqual({ recorded: true });
    const payout = await ledger.readPayout('p');
    expect(payout).toMatchObject({ state: 'in_progress', txhash: 'hash-1', attempt: 1 });
    expect(payout).not.toHaveProperty('message');
    expect(payout?.history.at(-1)).toEqual({ at: payout?.updatedAt, from: 'sending', to: 'in_progress' });
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it('records a rejection with what the gateway said', async () => {
    expect(await finish(await begun(), REJECTED)).toEqual({ recorded: true });
    const payout = await ledger.readPayout('p');
    expect(payout).toMatchObject({ state: 'rejected', message: 'too little' });
    expect(payout).not.toHaveProperty('txhash');
    expect(payout?.history.at(-1)).toMatchObject({ from: 'sending', to: 'rejected', reason: 'too little' });
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it('records that nothing is known, and the request may still be on its way', async () => {
    expect(await finish(await begun(), UNKNOWN)).toEqual({ recorded: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'unknown', message: 'no response in time' });
    expect(await isAwaitingAnswer()).toBe(true);
  });

  it('keeps what the gateway said on one line', async () => {
    await finish(await begun(), { kind: 'rejected', message: 'two\nlines\tand a tab' });
    const payout = await ledger.readPayout('p');
    expect(payout?.message).toBe('two lines and a tab');
    expect(payout?.history.at(-1)?.reason).toBe('two lines and a tab');
  });

  it('is ignored for another number, another token and a payout that is not there', async () => {
    const attempt = await begun();
    for (const wrong of [
      { ...attempt, attempt: 0 },
      { ...attempt, attempt: 2 },
      { ...attempt, token: 'another' },
      { ...attempt, payoutId: 'q' },
    ]) {
      for (const result of [ACCEPTED, REJECTED, UNKNOWN]) await ignores(wrong, result);
    }
    expect(await readState()).toBe('sending');
  });

  it('is ignored for a payout that was never begun', async () => {
    await rig.enqueue('p');
    await ignores({ payoutId: 'p', attempt: 0, token: '' }, ACCEPTED);
  });

  it('counts for the attempt itself though another process has the lease by now', async () => {
    const attempt = await begun();
    await takeLease(ledger, 'two');
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
  });

  it.each([
    ['accepted', ACCEPTED],
    ['rejected', REJECTED],
    ['unknown', UNKNOWN],
  ])('is recorded once: %s', async (_, result) => {
    const attempt = await begun();
    await finish(attempt, result);
    await ignores(attempt, result);
  });

  it('does not turn one response into another', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    await ignores(attempt, REJECTED);
    await ignores(attempt, UNKNOWN);
    const other = await begun('other');
    await finish(other, REJECTED);
    await ignores(other, UNKNOWN);
    expect(await finish(other, { kind: 'accepted', txhash: 'hash-2' })).toEqual({
      recorded: false,
      latePayment: true,
    });
    expect(await readState('other')).toBe('rejected');
  });

  it('is no news once its txhash turned out to be of another payment, which may have it', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    const found = { from: 'in_progress', to: 'unknown', txhash: 'hash-1' } as const;
    expect(await rig.change({ payoutId: 'p', ...found })).toBe('done');
    await ignores(attempt, ACCEPTED);
    expect(await finish(await begun('other'), ACCEPTED)).toEqual({ recorded: true });
    expect(await readState('other')).toBe('in_progress');
    expect(await readState()).toBe('unknown');
  });

  it('is ignored for an attempt that was put back as not sent, unless it is an acceptance', async () => {
    const attempt = await begun();
    await ledger.revertSend(attempt, 'no connection');
    for (const result of [REJECTED, UNKNOWN]) await ignores(attempt, result);
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
  });
});

describe('late response', () => {
  it('of acceptance leads from unknown to in_progress, removes the old message and clears the flag', async () => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
    const payout = await ledger.readPayout('p');
    expect(payout).toMatchObject({ state: 'in_progress', txhash: 'hash-1' });
    expect(payout).not.toHaveProperty('message');
    expect(payout?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'unknown', 'in_progress']);
    expect(await isAwaitingAnswer()).toBe(false);
    await ignores(attempt, ACCEPTED);
  });

  it('of rejection leads from unknown to rejected', async () => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    expect(await finish(attempt, REJECTED)).toEqual({ recorded: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'rejected', message: 'too little' });
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it('counts also after another holder made the payout unknown', async () => {
    const attempt = await begun();
    const lease = await takeLease(ledger, 'two');
    expect(await ledger.markSendsUnknown(lease, [attempt], 'the sender ended', 0)).toEqual(['p']);
    await ignores({ ...attempt, token: 'another' }, ACCEPTED);
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
    expect(await readState()).toBe('in_progress');
  });

  it.each([
    ['cancelled', {}],
    ['in_progress', { txhash: 'by-hand' }],
  ] as const)('is noted as a late payment once an operator has made the payout %s', async (to, extra) => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    expect(await rig.change({ payoutId: 'p', from: 'unknown', to, ...extra })).toBe('done');
    expect(await finish(attempt, UNKNOWN)).toEqual({ recorded: false });
    expect(await finish(attempt, REJECTED)).toEqual({ recorded: false });
    expect(await ledger.readPayout('p')).not.toHaveProperty('lateTxhash');
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: to, lateTxhash: 'hash-1', ...extra });
    const before = await rig.dump();
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    expect(await rig.dump()).toEqual(before);
  });

  it('says nothing of a payment that the operator has named himself', async () => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'hash-1' });
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: false });
    expect(await ledger.readPayout('p')).not.toHaveProperty('lateTxhash');
  });

  it('of acceptance stops a payout that an operator took for not sent from being sent again', async () => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'was not sent' });
    await ignores(attempt, UNKNOWN);
    expect(await finish(attempt, REJECTED)).toEqual({ recorded: false });
    expect(await readState()).toBe('queued');
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'hash-1' });
  });

  it('of an earlier attempt is noted as a late payment while the next one is sending', async () => {
    const first = await begun();
    await finish(first, UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'was not sent' });
    const second = await begin(ledger, { owner: 'one', epoch: 1 }, 'p');
    await ignores(first, REJECTED);
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'sending', lateTxhash: 'hash-1' });
    expect(await finish(second, { kind: 'accepted', txhash: 'hash-2' })).toEqual({ recorded: true });
  });

  it('of an earlier attempt keeps a payout from being sent again after the number of another was used up', async () => {
    const first = await begun();
    await finish(first, UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'was not sent' });
    await ledger.revertSend({ payoutId: 'p', attempt: 2, token: 'never-began' }, 'no reply');
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: true });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'hash-1' });
  });
});

describe('one txhash for two payouts', () => {
  it('makes both unknown, each with the reason', async () => {
    await finish(await begun('first'), ACCEPTED);
    expect(await finish(await begun('second'), ACCEPTED)).toEqual({ recorded: true });
    expect(await ledger.readPayout('first')).toMatchObject({
      state: 'unknown',
      message: 'the gateway gave the same txhash to payout second',
    });
    const second = await ledger.readPayout('second');
    expect(second).toMatchObject({
      state: 'unknown',
      message: 'the gateway gave the txhash of payout first: hash-1',
    });
    expect(second).not.toHaveProperty('txhash');
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it.each(SAME_TRANSACTION)('counts %s and %s as one', async (one, other) => {
    await finish(await begun('first'), { kind: 'accepted', txhash: one });
    await finish(await begun('second'), { kind: 'accepted', txhash: other });
    expect([await readState('first'), await readState('second')]).toEqual(['unknown', 'unknown']);
    const second = { payoutId: 'second', from: 'unknown', to: 'in_progress', txhash: other } as const;
    expect(await rig.change(second)).toBe('txhash');
    const adopted = { payoutId: 'third', attempt: 1, token: 'sent' };
    const sent = await rig.adoptSend(adopted, { kind: 'accepted', txhash: other });
    expect(sent).toMatchObject({ state: 'unknown' });
  });

  it.each(SAME_TRANSACTION)('frees %s under %s, when it turned out to be of another payment', async (one, other) => {
    await finish(await begun('first'), { kind: 'accepted', txhash: one });
    await rig.change({ payoutId: 'first', from: 'in_progress', to: 'unknown', txhash: other });
    await finish(await begun('second'), { kind: 'accepted', txhash: other });
    expect(await readState('second')).toBe('in_progress');
  });

  it.each(SAME_TRANSACTION)('sees no late payment in %s, which an operator gave as %s', async (one, other) => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: other });
    expect(await finish(attempt, { kind: 'accepted', txhash: one })).toEqual({ recorded: false });
    await rig.adoptSend(attempt, { kind: 'accepted', txhash: one });
    expect(await ledger.readPayout('p')).not.toHaveProperty('lateTxhash');
  });

  it.each([
    ['Base58', '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW'],
    ['Base64', 'rFHtT9A0fYZ5s9E2qeVfNrOCKv1oE6ISLUk5sBTV1ac='],
  ])('tells %s of another case apart', async (_, txhash) => {
    await finish(await begun('first'), { kind: 'accepted', txhash });
    await finish(await begun('second'), { kind: 'accepted', txhash: txhash.toLowerCase() });
    expect([await readState('first'), await readState('second')]).toEqual(['in_progress', 'in_progress']);
  });

  it.each(['completed', 'failed', 'unknown'] as const)('that was replaced decides nothing: not %s', async (to) => {
    await finish(await begun(), ACCEPTED);
    await rig.change({ payoutId: 'p', from: 'in_progress', to: 'unknown', txhash: 'hash-1' });
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'in_progress', txhash: 'by-hand' });
    expect(await rig.change({ payoutId: 'p', from: 'in_progress', to, txhash: 'hash-1' })).toBe('attempt');
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'by-hand' });
    expect(await rig.change({ payoutId: 'p', from: 'in_progress', to, txhash: 'by-hand' })).toBe('done');
    expect(await ledger.readPayout('p')).toMatchObject({ state: to, txhash: 'by-hand' });
  });

  it('leaves a payout alone that is completed: the transaction is its own', async () => {
    await finish(await begun('first'), ACCEPTED);
    await rig.change({ payoutId: 'first', from: 'in_progress', to: 'completed' });
    const second = await begun('second');
    await finish(second, ACCEPTED);
    expect(await readState('first')).toBe('completed');
    expect(await readState('second')).toBe('unknown');
    await ignores(second, ACCEPTED);
  });
});

describe('the flag of a request without a response', () => {
  it('stays through a change of the holder and a recovery', async () => {
    await begun();
    const lease = await takeLease(ledger, 'two');
    expect(await isAwaitingAnswer()).toBe(true);
    const sending = await ledger.readSending();
    await ledger.markSendsUnknown(lease, sending, 'the sender ended', 0);
    expect(await isAwaitingAnswer()).toBe(true);
  });

  it('stays when an operator decides about the payout: the request may linger all the same', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.change({ payoutId: 'p', from: 'unknown', to: 'cancelled' });
    expect(await isAwaitingAnswer()).toBe(true);
  });

  it('belongs to the last attempt begun: an earlier one does not clear it', async () => {
    const earlier = await begun('earlier');
    await finish(earlier, UNKNOWN);
    await rig.enqueue('later');
    const later = await begin(ledger, { owner: 'one', epoch: 1 }, 'later');
    await finish(earlier, ACCEPTED);
    expect(await isAwaitingAnswer()).toBe(true);
    await finish(later, ACCEPTED);
    expect(await isAwaitingAnswer()).toBe(false);
  });
});

it('counts every send that begins, whatever comes of it', async () => {
  const lease = await takeLease(ledger, 'one');
  for (const [index, result] of [ACCEPTED, REJECTED, UNKNOWN].entries()) {
    await send(rig, lease, { payoutId: `p${index}`, result });
    expect((await ledger.readSender()).sendCount).toBe(index + 1);
  }
});
