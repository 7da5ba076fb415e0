import { describe, expect, it } from '@jest/globals';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import {
  ACCEPTED,
  begun,
  change,
  enqueue,
  finish,
  read,
  REJECTED,
  rig,
  sender,
  stateOf,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';
import { begin, HOLD, nextBegin, takeLease } from './ledger-rig.js';

/** A payout that may not be sent is held: only a queued one, only as it was checked, and only until someone decides. */

const HELD = { kind: 'signature', reason: 'expired', message: 'the signature expired' };
const hold = async (attempt?: number, payoutId = 'p') => sender.holdPayout(payoutId, attempt, HOLD);
const held = async (): Promise<void> => {
  await enqueue('p');
  expect(await hold(0)).toBe(true);
};
const holdsNothing = async (...attempts: number[]): Promise<void> => {
  for (const attempt of attempts) expect(await unchanged(async () => hold(attempt))).toBe(false);
};

it('payouts that were signed before a time are those that wait, in their order, whose signature counts', async () => {
  const signed = async (payoutId: string, issuedAt: string, expiresAt = '2040-01-01T00:00:00.000Z'): Promise<void> =>
    rig.enqueue(payoutId, { signed: { key: 'shop', signature: 'x'.repeat(86), issuedAt, expiresAt } });
  await signed('q', '2029-12-31T23:59:59.999Z');
  await signed('p', '2029-12-01T00:00:00.000Z');
  await signed('on-time', '2030-01-01T00:00:00.000Z');
  await signed('expired', '2019-12-01T00:00:00.000Z', '2019-12-08T00:00:00.000Z');
  await rig.enqueue('unsigned');
  await signed('held', '2029-12-01T00:00:00.000Z');
  await hold(0, 'held');
  await signed('waits', '2029-12-01T00:00:00.000Z');
  await sender.holdPayout('waits', 0, { ...HOLD, kind: 'policy', reason: 'wait' });
  const find = async () => sender.findSignedBefore(Date.parse('2030-01-01T00:00:00Z'));
  expect(await find()).toEqual(['q', 'p', 'waits']);
  for (const payoutId of ['p', 'q']) await change(payoutId, 'queued', 'cancelled');
  await change('waits', 'held', 'cancelled');
  expect(await find()).toEqual([]);
});

describe('hold', () => {
  it('holds a queued payout, which says why; repeated, it changes nothing', async () => {
    await held();
    const payout = await read();
    expect(payout).toMatchObject({ state: 'held', attempt: 0, held: HELD });
    const [from, to, reason] = ['queued', 'held', HELD.message];
    expect(payout?.history.at(-1)).toEqual({ at: payout?.updatedAt, from, to, reason });
    rig.advance(1);
    expect(await hold(0)).toBe(true);
    expect(await read()).toEqual(payout);
  });

  it('keeps what is said of it on one line', async () => {
    await enqueue('p');
    await sender.holdPayout('p', 0, { ...HOLD, message: `two\nlines\t${'x'.repeat(400)}`, reason: 'a\tb' });
    const payout = await read();
    expect(payout?.held?.message).toMatch(/^two lines x+…$/);
    expect(payout?.held?.reason).toBe('a b');
    expect(payout?.history.at(-1)?.reason).toBe(payout?.held?.message);
  });

  it('does not hold another attempt than the one that was checked, unless none is named, nor what is not there', async () => {
    await sender.readSender();
    await holdsNothing(0);
    await enqueue('p');
    await holdsNothing(1);
    expect(await stateOf()).toBe('queued');
    expect(await hold()).toBe(true);
    expect(await read()).toMatchObject({ state: 'held', held: HELD });
  });

  it('does not hold what is sent, or was', async () => {
    const attempt = await begun();
    await holdsNothing(0, 1);
    await finish(attempt, REJECTED);
    await holdsNothing(0, 1);
    await change('p', 'rejected', 'cancelled');
    await holdsNothing(1);
  });

  it('keeps a payout from being begun until it is released; cancelled, it says no longer why it was held', async () => {
    await held();
    const lease = await takeLease(sender, 'one');
    const refused = await sender.beginSend(await nextBegin(sender, lease, 'p'));
    expect(refused).toEqual({ kind: 'wrong_state', state: 'held', attempt: 0 });
    await change('p', 'held', 'queued');
    const payout = await read();
    expect(payout).toMatchObject({ state: 'queued', requeueCount: 1 });
    expect(payout).not.toHaveProperty('held');
    await begin(sender, lease, 'p');
    await enqueue('q');
    await hold(0, 'q');
    await change('q', 'held', 'cancelled');
    expect(await read('q')).not.toHaveProperty('held');
  });

  it('gives up a begin whose fate is unclear: its number does not fit the payout that is released', async () => {
    await held();
    const late: SendAttempt = { payoutId: 'p', attempt: 1, token: 'late' };
    await sender.revertSend(late, 'no reply');
    expect(await read()).toMatchObject({ state: 'held', attempt: 1 });
    expect(await sender.findForgottenSends([late])).toEqual([]);
  });

  it('takes the late acceptance of an earlier attempt, and lets a late rejection be', async () => {
    const attempt = await begun();
    await finish(attempt, UNKNOWN);
    await change('p', 'unknown', 'queued');
    expect(await hold(1)).toBe(true);
    expect(await finish(attempt, REJECTED)).toEqual({ recorded: false });
    expect(await stateOf()).toBe('held');
    expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
    const payout = await read();
    expect(payout).toMatchObject({ state: 'in_progress', txhash: 'h' });
    expect(payout).not.toHaveProperty('held');
  });

  it.each([
    [undefined, 'unknown'],
    [ACCEPTED, 'in_progress'],
    [REJECTED, 'rejected'],
  ])('does not hide a send that the ledger forgot: %j becomes %s', async (outcome, state) => {
    await held();
    expect(await rig.adoptSend({ payoutId: 'p', attempt: 1, token: 't' }, outcome)).toEqual({ payoutId: 'p', state });
    expect(await read()).not.toHaveProperty('held');
  });
});
