import { expect, it } from '@jest/globals';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import {
  ACCEPTED,
  ANN,
  begin,
  beginOne,
  begun,
  change,
  enqueue,
  finish,
  HOLD,
  ledger,
  nextBegin,
  OBJECTION,
  read,
  REJECTED,
  rig,
  sender,
  stateOf,
  takeLease,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';
import { addApproval } from '../../../src/control/operator/store-approval.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';

/** A payout that may not be sent is held: only a queued one, only as it was checked, and only until someone decides. */

const HELD = { kind: 'signature', reason: 'expired', message: 'the signature expired' };
const hold = async (attempt?: number, payoutId = 'p') => sender.holdPayout(payoutId, attempt, HOLD);
const held = async () => {
  await enqueue('p');
  expect(await hold(0)).toBe(true);
};
const holdsNothing = async (...attempts: number[]) => {
  for (const attempt of attempts) expect(await unchanged(async () => hold(attempt))).toBe(false);
};

it('payouts signed before a time are those that wait, in order, whose signature counts', async () => {
  const signed = async (payoutId: string, issuedAt: string, expiresAt = '2040-01-01T00:00:00.000Z') =>
    rig.enqueue(payoutId, {
      signed: { key: 'shop', signature: 'x'.repeat(86), audience: 'test', issuedAt, expiresAt },
    });
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

it('hold holds a queued payout, which says why; repeated, it changes nothing but the reason', async () => {
  await held();
  const payout = await read();
  expect(payout).toMatchObject({ state: 'held', attempt: 0, held: HELD });
  const [from, to, reason] = ['queued', 'held', HELD.message];
  expect(payout?.history.at(-1)).toEqual({ at: payout?.updatedAt, from, to, reason });
  rig.advance(1);
  expect(await hold(0)).toBe(true);
  expect(await read()).toEqual(payout);
  await sender.holdPayout('p', 0, { ...HOLD, reason: 'tampered' });
  expect(await read()).toEqual({ ...payout, held: { ...HELD, reason: 'tampered' } });
});

it('hold keeps what is said of it on one line', async () => {
  await enqueue('p');
  await sender.holdPayout('p', 0, { ...HOLD, message: `two\nlines\t${'x'.repeat(400)}`, reason: 'a\tb' });
  const payout = await read();
  expect(payout?.held?.message).toMatch(/^two lines x+…$/);
  expect(payout?.held?.reason).toBe('a b');
  expect(payout?.history.at(-1)?.reason).toBe(payout?.held?.message);
});

it('hold does not hold another attempt than was checked, unless none is named', async () => {
  await sender.readSender();
  await holdsNothing(0);
  await enqueue('p');
  await holdsNothing(1);
  expect(await stateOf()).toBe('queued');
  expect(await hold()).toBe(true);
  expect(await read()).toMatchObject({ state: 'held', held: HELD });
});

it('hold does not hold what is sent, or was', async () => {
  const attempt = await begun();
  await holdsNothing(0, 1);
  await finish(attempt, REJECTED);
  await holdsNothing(0, 1);
  await change('p', 'rejected', 'cancelled');
  await holdsNothing(1);
});

it('hold keeps a payout from being begun until released; cancelled, it says no longer why', async () => {
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

it('hold gives up a begin whose fate is unclear: its number does not fit the released payout', async () => {
  await held();
  const late: SendAttempt = { payoutId: 'p', attempt: 1, token: 'late' };
  await sender.revertSend(late, 'no reply');
  expect(await read()).toMatchObject({ state: 'held', attempt: 1 });
  expect(await sender.findForgottenSends([late])).toEqual([]);
});

it('hold takes the late acceptance of an earlier attempt, and lets a late rejection be', async () => {
  const attempt = await begun();
  await finish(attempt, UNKNOWN);
  await change('p', 'unknown', 'queued');
  expect(await hold(1)).toBe(true);
  expect(await finish(attempt, REJECTED)).toEqual({ recorded: false });
  expect(await stateOf()).toBe('held');
  expect(await finish(attempt, ACCEPTED)).toEqual({ recorded: true });
  const payout = await read();
  expect(payout).toMatchObject({ state: 'in_progress', gatewayId: 'h' });
  expect(payout).not.toHaveProperty('held');
});

it.each([
  [undefined, 'unknown'],
  [ACCEPTED, 'in_progress'],
  [REJECTED, 'rejected'],
])('hold does not hide a send that the ledger forgot: %j becomes %s', async (outcome, state) => {
  await held();
  expect(await rig.adoptSend({ payoutId: 'p', attempt: 1, token: 't' }, outcome)).toEqual({ payoutId: 'p', state });
  expect(await read()).not.toHaveProperty('held');
});

const SAID: SignedApproval = {
  ...{ audience: 'test', payoutId: 'p', intent: '0'.repeat(64), decision: 'approve', reason: '', by: 'ann-1' },
  signature: 's'.repeat(86),
  ...{ at: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-02T00:00:00.000Z' },
};
const LATER = { at: '2030-01-01T01:00:00.000Z' };
const say = async (more: Partial<SignedApproval> = {}) => {
  const { expiresAt, ...said } = { ...SAID, ...more };
  const payment = { paymentId: 7, amount: '1', symbol: '', addressTo: 'w' };
  await addApproval(ledger, { ...said, ...(said.decision === 'approve' && { ...payment, expiresAt }) });
};
const permitted = async () => nextBegin(sender, await takeLease(sender, 'one'), 'p');

it.each(['approve', 'reject'] as const)(
  'a decision that came since a send was permitted does not let it begin (%s)',
  async (decision) => {
    await enqueue('p');
    await say({ by: 'bob-1' });
    const asked = await permitted();
    await say({ decision });
    // A rejection holds it besides. An operator may release it: the count still says no.
    if (decision === 'reject') await change('p', 'held', 'queued');
    const refused = { kind: 'wrong_state', state: 'queued', attempt: 0 };
    expect(await sender.beginSend(asked)).toEqual(refused);
    // The same key says another thing: their number is the same.
    await say(LATER).catch(() => undefined);
    await say({ ...LATER, decision: 'reject' });
    await change('p', 'held', 'queued');
    expect(await sender.beginSend({ ...asked, decisions: asked.decisions + 1 })).toEqual(refused);
    const { decisions = 0 } = (await read()) ?? {};
    const begin = await sender.beginSend({ ...asked, decisions });
    expect(begin).toMatchObject({ kind: 'begun' });
  },
);

it('an approval that comes again refuses no send that was permitted with it', async () => {
  await enqueue('p');
  await say();
  const asked = await permitted();
  await say();
  expect(await sender.beginSend(asked)).toMatchObject({ kind: 'begun' });
});

const reject = async () => {
  if ((await read()) === undefined) await enqueue('p');
  await finish(await beginOne('p'), REJECTED);
};
const retry = async (act?: string) => change('p', 'rejected', 'queued', { ...ANN, act });
const actOf = async () => (await read())?.act;
const resumeAct = async () => (await sender.readSender()).resumeAct;

it('a signed act stands in the payout that it sends again, until the next one', async () => {
  await reject();
  expect(await actOf()).toBeUndefined();
  await retry('first');
  expect(await read()).toMatchObject({ state: 'queued', act: 'first' });
  await reject();
  expect(await actOf()).toBe('first');
  await retry('second');
  expect(await actOf()).toBe('second');
});

it('a signed act is kept where the same change was made before without one', async () => {
  await reject();
  await retry();
  await retry('late');
  expect(await read()).toMatchObject({ state: 'queued', requeueCount: 1, act: 'late' });
});

it('a signed act is not kept where the change is refused', async () => {
  await reject();
  const wrong = { payoutId: 'p', to: 'queued', act: 'wrong' } as const;
  expect(await rig.change({ ...wrong, from: 'unknown' })).toBe('state');
  expect(await rig.change({ ...wrong, from: 'rejected', attempt: 2 })).toBe('attempt');
  expect(await actOf()).toBeUndefined();
});

it('a signed act of a resume is shown to the sender, but not while a journal objects', async () => {
  expect(await resumeAct()).toBeUndefined();
  await rig.pause('look');
  expect([await rig.resume('first'), await resumeAct()]).toEqual([true, 'first']);
  expect([await rig.resume('second'), await resumeAct()]).toEqual([false, 'second']);
  await sender.object(OBJECTION);
  expect([await rig.resume('early'), await resumeAct()]).toEqual(['objected', 'second']);
  await rig.adoptLedger({ epoch: 1, sendCount: 1 }, { read: [], givenUp: [OBJECTION.journalId] });
  await rig.resume();
  expect(await resumeAct()).toBe('second');
});

it('a signed act of an adoption is shown to the sender', async () => {
  await rig.adoptLedger({ epoch: 1, sendCount: 1 });
  expect((await sender.readSender()).adoptAct).toBeUndefined();
  await rig.adoptLedger({ epoch: 1, sendCount: 1 }, undefined, 'signed');
  expect(await sender.readSender()).toMatchObject({ sendCount: 3, adoptAct: 'signed' });
});
