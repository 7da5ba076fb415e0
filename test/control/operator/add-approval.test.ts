import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ConflictError, InvalidInputError, NotFoundError } from '../../../src/base/errors.js';
import { addApproval, MAX_APPROVALS } from '../../../src/control/operator/store-approval.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { readEvents } from '../../../src/producer/events/payout-events.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../../ledger/support/test-account.js';

let account: TestAccount;
beforeEach(async () => {
  account = openTestAccount();
  await account.ledger.enqueue([aPayout('p')]);
});
afterEach(async () => account.close());

const AT = '2030-01-01T09:00:00.000Z';

function approval(by: string, changes: Partial<SignedApproval> = {}): SignedApproval {
  const times = { at: AT, expiresAt: '2030-01-02T09:00:00.000Z' };
  return { payoutId: 'p', intent: 'ab'.repeat(32), decision: 'approve', by, ...times, signature: 's', ...changes };
}

const add = async (given: SignedApproval, reason?: string): Promise<void> => addApproval(account.ledger, given, reason);
const approvals = async (payoutId = 'p') => (await account.ledger.require(payoutId)).approvals;
const cancel = async (payoutId = 'p'): Promise<unknown> =>
  account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });

async function told(): Promise<object[]> {
  const events = await readEvents(account.connection, { sinceMs: 0 }, 100);
  const approvalsTold = events.filter(({ type }) => type === 'approval');
  return approvalsTold.map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'eventId')));
}

it('keeps the approval of a payout that is queued or held, and has it judged again', async () => {
  expect(await approvals()).toBeUndefined();
  await add(approval('ann'));
  await account.sender.holdPayout('p', 0, HOLD);
  await add(approval('bob'), 'seen the invoice');
  expect(await approvals()).toEqual([approval('ann'), approval('bob')]);
  expect(await account.redis.smembers(account.connection.keys.recheck)).toEqual(['p']);
});

it('tells of each in the events and in the activity', async () => {
  await add(approval('ann'));
  await add(approval('bob', { decision: 'reject' }), 'wrong\naddress');
  const event = { type: 'approval', payoutId: 'p', at: AT };
  expect(await told()).toEqual([
    { ...event, decision: 'approve', by: 'ann' },
    { ...event, decision: 'reject', by: 'bob', reason: 'wrong address' },
  ]);
  const { activities } = await readActivity(account.connection, 10);
  expect(activities).toEqual([
    { what: 'disapproved', payoutId: 'p', count: 1, at: AT, by: 'bob', reason: 'wrong address' },
    { what: 'approved', payoutId: 'p', count: 1, at: AT, by: 'ann', reason: '' },
  ]);
});

it('keeps one of each key, the last, and tells of the same one once', async () => {
  await add(approval('ann'));
  await add(approval('ann'));
  expect(await told()).toHaveLength(1);
  const later = approval('ann', { at: '2030-01-01T10:00:00.000Z' });
  await add(later);
  expect(await approvals()).toEqual([later]);
});

it('never lets an approval take the place of a rejection', async () => {
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
  await expect(add(approval('ann', { payoutId: 'none' }))).rejects.toThrow(NotFoundError);
  await cancel();
  await expect(add(approval('ann'))).rejects.toThrow(ConflictError);
  await expect(add(approval('ann'))).rejects.toThrow('Payout p is cancelled: only a payout that is queued or held');
  expect([await approvals(), await told()]).toEqual([undefined, []]);
});

it(`takes those of ${MAX_APPROVALS} keys, and a later one of each`, async () => {
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
  await expect(add(approval('ann', changes))).rejects.toThrow(InvalidInputError);
  await expect(add(approval('ann', changes))).rejects.toThrow(message);
});

it('leaves out what someone put in that is no approval, or another key', async () => {
  await add(approval('ann'));
  await account.redis.hset(account.connection.keys.payout('p'), {
    ...{ 'approval:bob': JSON.stringify(approval('carol')), 'approval:dan': '{', 'approval:eve': '7' },
    'approval:fay': JSON.stringify({ ...approval('fay'), note: 'x' }),
  });
  expect(await approvals()).toEqual([approval('ann')]);
  await add(approval('dan'));
  await add(approval('eve'));
  expect(await approvals()).toHaveLength(3);
});

it('keeps approvals with the payout, and drops them where it is signed again', async () => {
  const signature = { key: 'shop', signature: 's'.repeat(86), expiresAt: '2030-01-08T00:00:00.000Z' };
  const enqueue = async (second: number): Promise<unknown> =>
    account.ledger.enqueue([
      { ...aPayout('q'), signed: { ...signature, issuedAt: `2030-01-01T00:00:0${second}.000Z` } },
    ]);
  const ann = approval('ann', { payoutId: 'q' });
  await enqueue(0);
  await add({ ...ann, decision: 'reject' });
  await enqueue(0);
  expect(await approvals('q')).toHaveLength(1);
  await enqueue(1);
  expect(await approvals('q')).toBeUndefined();
  await add(ann);
  await cancel('q');
  expect(await approvals('q')).toEqual([ann]);
});
