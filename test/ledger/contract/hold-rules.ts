import { describe, expect, it } from '@jest/globals';
import type { Payout } from '../../../src/ledger/payout.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { begin, HOLD, nextBegin, NO_BREAKER, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

const ACT = { by: 'ann', reason: 'the cause is gone' };
const HELD = { kind: 'signature', reason: 'expired', message: 'the signature expired' };

/** A payout that may not be sent is held: only a queued one, only as it was checked, and only until someone decides. */
const read = async (): Promise<Payout | undefined> => ledger.readPayout('p');
const hold = async (attempt = 0): Promise<boolean> => ledger.holdPayout('p', attempt, HOLD);
const held = async (): Promise<void> => {
  await rig.enqueue('p');
  expect(await hold()).toBe(true);
};
const begun = async (): Promise<SendAttempt> => {
  await rig.enqueue('p');
  return begin(ledger, await takeLease(ledger, 'one'), 'p');
};
/** An attempt that an operator took for not sent, and whose payout is held since. */
const heldAfterAttempt = async (): Promise<SendAttempt> => {
  const attempt = await begun();
  await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, NO_BREAKER, 0);
  await rig.change({ payoutId: 'p', from: 'unknown', to: 'queued', ...ACT });
  expect(await hold(1)).toBe(true);
  return attempt;
};
const holdsNothing = async (attempt: number): Promise<void> => {
  await ledger.readSender();
  const before = await rig.dump();
  expect(await hold(attempt)).toBe(false);
  expect(await rig.dump()).toEqual(before);
};

describe('payouts that were signed before a time', () => {
  const NOW = Date.parse('2030-01-01T00:00:00Z');
  const signed = async (payoutId: string, issuedAt: string, expiresAt = '2040-01-01T00:00:00.000Z'): Promise<void> =>
    rig.enqueue(payoutId, { signed: { key: 'shop', signature: 'x'.repeat(86), issuedAt, expiresAt } });

  it('are those that wait, in their order, whose signature counts', async () => {
    await signed('q', '2029-12-31T23:59:59.999Z');
    await signed('p', '2029-12-01T00:00:00.000Z');
    await signed('on-time', '2030-01-01T00:00:00.000Z');
    await signed('expired', '2019-12-01T00:00:00.000Z', '2019-12-08T00:00:00.000Z');
    await rig.enqueue('unsigned');
    await signed('held', '2029-12-01T00:00:00.000Z');
    await ledger.holdPayout('held', 0, HOLD);
    await signed('waits', '2029-12-01T00:00:00.000Z');
    await ledger.holdPayout('waits', 0, { ...HOLD, kind: 'policy', reason: 'wait' });
    expect(await ledger.findSignedBefore(NOW)).toEqual(['q', 'p', 'waits']);
    await rig.change({ payoutId: 'p', from: 'queued', to: 'cancelled', ...ACT });
    await rig.change({ payoutId: 'q', from: 'queued', to: 'cancelled', ...ACT });
    await rig.change({ payoutId: 'waits', from: 'held', to: 'cancelled', ...ACT });
    expect(await ledger.findSignedBefore(NOW)).toEqual([]);
  });
});

describe('hold', () => {
  it('holds a queued payout, which says why', async () => {
    await held();
    const payout = await read();
    expect(payout).toMatchObject({ state: 'held', attempt: 0, held: HELD });
    expect(payout?.history.at(-1)).toEqual({
      ...{ at: payout?.updatedAt, from: 'queued', to: 'held', reason: 'the signature expired' },
    });
  });

  it('keeps what is said of it on one line', async () => {
    await rig.enqueue('p');
    await ledger.holdPayout('p', 0, { ...HOLD, message: `two\nlines\t${'x'.repeat(400)}`, reason: 'a\tb' });
    const payout = await read();
    expect(payout?.held?.message).toMatch(/^two lines x+…$/);
    expect(payout?.held?.reason).toBe('a b');
    expect(payout?.history.at(-1)?.reason).toBe(payout?.held?.message);
  });

  it('says the same when it is repeated, and changes nothing', async () => {
    await held();
    const before = await read();
    rig.advance(1);
    expect(await hold()).toBe(true);
    expect(await read()).toEqual(before);
  });

  it('does not hold another attempt than the one that was checked, nor a payout that is not there', async () => {
    await holdsNothing(0);
    await rig.enqueue('p');
    await holdsNothing(1);
    expect((await read())?.state).toBe('queued');
  });

  it('holds whatever attempt it is at where none is named', async () => {
    await rig.enqueue('p');
    expect(await ledger.holdPayout('p', undefined, HOLD)).toBe(true);
    expect(await read()).toMatchObject({ state: 'held', held: HELD });
  });

  it('does not hold what is sent, or was', async () => {
    const attempt = await begun();
    for (const number of [0, 1]) await holdsNothing(number);
    await ledger.finishSend(attempt, { kind: 'rejected', message: 'no funds' }, NO_BREAKER, 0);
    for (const number of [0, 1]) await holdsNothing(number);
    await rig.change({ payoutId: 'p', from: 'rejected', to: 'cancelled', ...ACT });
    await holdsNothing(1);
  });

  it('keeps a payout from being begun until it is released', async () => {
    await held();
    const lease = await takeLease(ledger, 'one');
    const refused = await ledger.beginSend(await nextBegin(ledger, lease, 'p'));
    expect(refused).toEqual({ kind: 'wrong_state', state: 'held', attempt: 0 });
    expect(await rig.change({ payoutId: 'p', from: 'held', to: 'queued', ...ACT })).toBe('done');
    const payout = await read();
    expect(payout).toMatchObject({ state: 'queued', requeueCount: 1 });
    expect(payout).not.toHaveProperty('held');
    await begin(ledger, lease, 'p');
  });

  it('lets it be cancelled, and says no longer why it was held', async () => {
    await held();
    expect(await rig.change({ payoutId: 'p', from: 'held', to: 'cancelled', ...ACT })).toBe('done');
    expect(await read()).not.toHaveProperty('held');
  });

  it('gives up a begin whose fate is unclear: its number does not fit the payout that is released', async () => {
    await held();
    const late = { payoutId: 'p', attempt: 1, token: 'late' };
    await ledger.revertSend(late, 'no reply');
    expect(await read()).toMatchObject({ state: 'held', attempt: 1 });
    expect(await ledger.findForgottenSends([late])).toEqual([]);
  });

  it('takes the late acceptance of an earlier attempt, and lets a late rejection be', async () => {
    const attempt = await heldAfterAttempt();
    const finish = ledger.finishSend.bind(ledger);
    expect(await finish(attempt, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0)).toEqual({ recorded: false });
    expect((await read())?.state).toBe('held');
    const accepted = { kind: 'accepted', txhash: 'hash-1' } as const;
    expect(await finish(attempt, accepted, NO_BREAKER, 0)).toEqual({ recorded: true });
    const payout = await read();
    expect(payout).toMatchObject({ state: 'in_progress', txhash: 'hash-1' });
    expect(payout).not.toHaveProperty('held');
  });

  it.each([
    [undefined, 'unknown'],
    [{ kind: 'accepted', txhash: 'hash-1' } as const, 'in_progress'],
    [{ kind: 'rejected', message: 'no funds' } as const, 'rejected'],
  ])('does not hide a send that the ledger forgot: %j becomes %s', async (outcome, state) => {
    await held();
    const forgotten = { payoutId: 'p', attempt: 1, token: 'forgotten' };
    expect(await rig.adoptSend(forgotten, outcome)).toEqual({ payoutId: 'p', state });
    expect(await read()).not.toHaveProperty('held');
  });

  it('does not hide a send that no journal has', async () => {
    await held();
    expect(await rig.holdSendable()).toBe(1);
    const payout = await read();
    expect(payout?.state).toBe('unknown');
    expect(payout).not.toHaveProperty('held');
  });
});
