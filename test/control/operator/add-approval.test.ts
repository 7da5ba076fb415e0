import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { ConflictError, InvalidInputError, NotFoundError } from '../../../src/base/errors.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { addApproval, MAX_APPROVALS } from '../../../src/control/operator/store-approval.js';
import { readEvents } from '../../../src/producer/events/payout-events.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const AT = '2030-01-01T09:00:00.000Z';

function approval(by: string, changes: Partial<SignedApproval> = {}): SignedApproval {
  const times = { at: AT, expiresAt: '2030-01-02T09:00:00.000Z' };
  return { payoutId: 'p', intent: 'ab'.repeat(32), decision: 'approve', by, ...times, signature: 's', ...changes };
}

const add = async (given: SignedApproval, reason?: string): Promise<void> => addApproval(account.ledger, given, reason);
const approvals = async () => (await account.ledger.require('p')).approvals;
const enqueue = async (payoutId = 'p'): Promise<unknown> => account.ledger.enqueue([aPayout(payoutId)]);

async function told(): Promise<object[]> {
  const events = await readEvents(account.connection, { sinceMs: 0 }, 100);
  const approvalsTold = events.filter(({ type }) => type === 'approval');
  return approvalsTold.map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'eventId')));
}

it('keeps the approval of a payout that is queued or held, and has it judged again', async () => {
  await enqueue();
  expect(await approvals()).toBeUndefined();
  await add(approval('ann'));
  await account.sender.holdPayout('p', 0, HOLD);
  await add(approval('bob'), 'seen the invoice');
  expect(await approvals()).toEqual([approval('ann'), approval('bob')]);
  expect(await account.redis.smembers(account.connection.keys.recheck)).toEqual(['p']);
});

it('tells of each in the events and in the activity', async () => {
  await enqueue();
  await add(approval('ann'));
  await add(approval('bob', { decision: 'reject' }), 'wrong\naddress');
  expect(await told()).toEqual([
    { type: 'approval', payoutId: 'p', decision: 'approve', at: AT, by: 'ann' },
    { type: 'approval', payoutId: 'p', decision: 'reject', at: AT, by: 'bob', reason: 'wrong address' },
  ]);
  const { activities } = await readActivity(account.connection, 10);
  expect(activities).toEqual([
    { what: 'disapproved', payoutId: 'p', count: 1, at: AT, by: 'bob', reason: 'wrong address' },
    { what: 'approved', payoutId: 'p', count: 1, at: AT, by: 'ann', reason: '' },
  ]);
});

it('keeps one of each key, the last, and tells of the same one once', async () => {
  await enqueue();
  await add(approval('ann'));
  await add(approval('ann'));
  expect(await told()).toHaveLength(1);
  const later = approval('ann', { at: '2030-01-01T10:00:00.000Z' });
  await add(later);
  expect(await approvals()).toEqual([later]);
});

it('never lets an approval take the place of a rejection', async () => {
  await enqueue();
  const rejection = approval('ann', { decision: 'reject' });
  await add(approval('ann'));
  await add(rejection);
  await expect(add(approval('ann'))).rejects.toThrow(ConflictError);
  await expect(add(approval('ann'))).rejects.toThrow(/^The key ann rejected payout p before, which stays/);
  expect(await approvals()).toEqual([rejection]);
  await add(rejection);
  expect(await told()).toHaveLength(2);
});

it('refuses a payout in any other state, and one that is not there', async () => {
  await expect(add(approval('ann'))).rejects.toThrow(NotFoundError);
  await enqueue();
  await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
  await expect(add(approval('ann'))).rejects.toThrow(ConflictError);
  await expect(add(approval('ann'))).rejects.toThrow('Payout p is cancelled: only a payout that is queued or held');
  expect(await approvals()).toBeUndefined();
  expect(await told()).toEqual([]);
});

it(`takes those of ${MAX_APPROVALS} keys, and a later one of each`, async () => {
  await enqueue();
  for (let number = 1; number <= MAX_APPROVALS; number += 1) await add(approval(`key-${number}`));
  await expect(add(approval('one-more'))).rejects.toThrow(/^Payout p has approvals of 40 keys, which is the most/);
  const later = approval('key-7', { decision: 'reject' });
  await add(later);
  expect(await approvals()).toHaveLength(MAX_APPROVALS);
  expect(await approvals()).toContainEqual(later);
});

it.each<[string, Partial<SignedApproval>, RegExp]>([
  ['key', { by: 'ann\nbob' }, /^by: must be 1 to 32/],
  ['hash', { intent: 'AB' }, /^intent: must be the SHA-256/],
  ['time', { at: '2030-01-01' }, /^at: /],
  ['signature', { signature: 'x'.repeat(4_097) }, /^signature: /],
  ['size', { signature: '\u2028\n'.repeat(1_024).repeat(2) }, /^approval: must be at most 5120 bytes/],
])('refuses one whose %s breaks a rule', async (_, changes, message) => {
  await enqueue();
  await expect(add(approval('ann', changes))).rejects.toThrow(InvalidInputError);
  await expect(add(approval('ann', changes))).rejects.toThrow(message);
});

it('leaves out what someone put in that is no approval, or another key', async () => {
  await enqueue();
  await add(approval('ann'));
  await account.redis.hset(account.connection.keys.payout('p'), {
    'approval:bob': JSON.stringify(approval('carol')),
    'approval:dan': '{',
    'approval:eve': '7',
    'approval:fay': JSON.stringify({ ...approval('fay'), note: 'x' }),
  });
  expect(await approvals()).toEqual([approval('ann')]);
  await add(approval('dan'));
  await add(approval('eve'));
  expect(await approvals()).toHaveLength(3);
});

it('keeps approvals with the payout, and drops them where it is signed again', async () => {
  const signature = { key: 'shop', signature: 's'.repeat(86), expiresAt: '2030-01-08T00:00:00.000Z' };
  const signed = (issuedAt: string) => ({ ...aPayout('p'), signed: { ...signature, issuedAt } });
  await account.ledger.enqueue([signed('2030-01-01T00:00:00.000Z')]);
  await add(approval('ann', { decision: 'reject' }));
  await account.ledger.enqueue([signed('2030-01-01T00:00:00.000Z')]);
  expect(await approvals()).toHaveLength(1);
  await account.ledger.enqueue([signed('2030-01-01T00:00:01.000Z')]);
  expect(await approvals()).toBeUndefined();
  await add(approval('ann'));
  await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
  expect(await approvals()).toEqual([approval('ann')]);
});
