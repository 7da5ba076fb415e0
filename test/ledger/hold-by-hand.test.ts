import { expect, it } from '@jest/globals';
import { addApproval } from '../../src/control/operator/store-approval.js';
import type { SignedApproval } from '../../src/ledger/control-record.js';
import type { NewPayout } from '../../src/ledger/payout.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import {
  ANN,
  aPayout,
  change,
  clock,
  connection,
  HOLD,
  ledger,
  nextBegin,
  read,
  redis,
  keys,
  sender,
  stateOf,
  takeLease,
  useAccount,
} from './support/use-account.js';

/** A person holds a payout: no rule, decision or new signature lets it pass until a person releases it. */

useAccount();

const byHand = async (from: 'queued' | 'held' = 'queued') => change('p', from, 'held', ANN);
const BY_HAND = {
  kind: 'person',
  reason: 'by_hand',
  message: 'ann holds it: looked it up. Only `payouts release` ends that',
};
const WAITS = { kind: 'policy', reason: 'wait', rule: 'day', message: 'no room', isTampering: false } as const;
const signed = (issuedAt: string): NewPayout => ({
  ...aPayout('p'),
  signed: { key: 'shop', signature: 'x'.repeat(86), audience: 'test', issuedAt, expiresAt: '2099-12-31T00:00:00.000Z' },
});
async function expectHeld(held: object = BY_HAND) {
  expect(await ledger.get('p')).toMatchObject({ state: 'held', held });
}

it('it is not begun, and only a person releases it, to the end of the queue', async () => {
  await ledger.enqueue([aPayout('p')]);
  const asked = await nextBegin(sender, await takeLease(sender, 'one'), 'p');
  await byHand();
  expect(await sender.beginSend(asked)).toMatchObject({ kind: 'wrong_state', state: 'held' });
  await expectHeld();
  await expect(change('p', 'held', 'queued', { reason: 'the policy lets it pass' })).rejects.toThrow('Cannot move');
  await expectHeld();
  await change('p', 'held', 'queued', ANN);
  expect(await stateOf()).toBe('queued');
  expect(await redis.hmget(keys.payout('p'), 'held', 'byHand')).toEqual([null, null]);
});

it('a rule neither replaces the reason nor lets it pass, also if it held the payout first', async () => {
  await ledger.enqueue([aPayout('p')]);
  await sender.holdPayout('p', 0, WAITS);
  const acts = await redis.hget(keys.ledger, 'acts');
  await byHand('held');
  await expectHeld();
  await sender.holdPayout('p', 0, WAITS);
  await expectHeld();
  await expect(change('p', 'held', 'queued')).rejects.toThrow('Cannot move');
  // A Redis that forgot it is behind the send journal.
  expect(Number(await redis.hget(keys.ledger, 'acts'))).toBe(Number(acts) + 1);
  expect((await readActivity(connection, 1)).activities).toMatchObject([{ what: 'held', by: 'ann', payoutId: 'p' }]);
});

it('what says that it may have been paid, or was altered, stays the reason that is shown', async () => {
  await ledger.enqueue([aPayout('p')]);
  await sender.holdPayout('p', 0, { ...HOLD, kind: 'journal', reason: 'sent_before' });
  await byHand('held');
  await expectHeld({ kind: 'journal', reason: 'sent_before' });
  await change('p', 'held', 'cancelled', ANN);
  expect(await stateOf()).toBe('written_off');
});

it('a new signature counts, and releases nothing', async () => {
  await ledger.enqueue([signed('2030-01-01T00:00:00.000Z')]);
  await byHand();
  clock.advance(60_000);
  const later = new Date(clock.wallNow()).toISOString();
  const renewed = signed(later);
  await ledger.enqueue([{ ...renewed, ...(renewed.signed && { signed: { ...renewed.signed, isVerified: true } }) }]);
  await expectHeld();
  expect(await ledger.get('p')).toMatchObject({ signed: { issuedAt: later } });
});

it('a rejection is shown before it, and taken back leaves it', async () => {
  await ledger.enqueue([aPayout('p')]);
  await byHand();
  const said: SignedApproval = {
    ...{ payoutId: 'p', intent: '0'.repeat(64), reason: 'wrong address', by: 'ann', at: '2030-01-01T00:00:00.000Z' },
    ...{ audience: 'test', decision: 'reject', signature: 's'.repeat(86) },
  };
  await addApproval(ledger, said, { person: 'ann' });
  await expectHeld({ kind: 'rejection' });
  await byHand('held');
  await expectHeld({ kind: 'rejection' });
  const rejected = Object.keys(await redis.hgetall(keys.payout('p'))).find((name) => name.startsWith('rejection:'));
  const hash = rejected?.split(':')[1] ?? '';
  await addApproval(ledger, { ...said, decision: 'unreject', intent: hash }, { person: 'ann' });
  await expectHeld();
  expect(await read()).toMatchObject({ attempt: 0 });
});
