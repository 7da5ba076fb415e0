import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { NotFoundError } from '../../src/base/errors.js';
import { hashApproval } from '../../src/control/approvals/approval.js';
import { addApproval, MAX_APPROVALS } from '../../src/control/operator/store-approval.js';
import type { SignedApproval } from '../../src/ledger/control-record.js';
import { readEvents } from '../../src/producer/events/payout-events.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { PAYMENT } from './support/signed.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';

let account: TestAccount;
beforeEach(async () => {
  account = openTestAccount();
  await account.ledger.enqueue([aPayout('p')]);
});
afterEach(async () => account.close());

const AT = '2030-01-01T09:00:00.000Z';

function approval(by: string, changes: Partial<SignedApproval> = {}): SignedApproval {
  const isApproval = (changes.decision ?? 'approve') === 'approve';
  const expiry = isApproval ? { expiresAt: '2030-01-02T09:00:00.000Z', ...PAYMENT } : {};
  const said = {
    audience: 'test',
    payoutId: 'p',
    intent: 'ab'.repeat(32),
    decision: 'approve',
    reason: '',
    by,
  } as const;
  return { ...said, at: AT, ...expiry, signature: 's', ...changes };
}

const add = async (given: SignedApproval): Promise<void> => addApproval(account.ledger, given);
const approvals = async (payoutId = 'p') => (await account.ledger.require(payoutId)).approvals;
const cancel = async (payoutId = 'p'): Promise<unknown> =>
  account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });

async function told(): Promise<object[]> {
  const events = await readEvents(account.connection, { sinceMs: 0 }, 100);
  const approvalsTold = events.filter(({ type }) => type === 'approval');
  return approvalsTold.map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'eventId')));
}

it('keeps one of each key of a payout that is queued or held, and has it judged again and told', async () => {
  await add(approval('ann'));
  await add(approval('ann'));
  await account.sender.holdPayout('p', 0, HOLD);
  const bobs = approval('bob', { decision: 'reject', reason: 'wrong address' });
  await add(bobs);
  expect(await approvals()).toEqual([approval('ann'), bobs]);
  expect(await account.redis.smembers(account.connection.keys.recheck)).toEqual(['p']);
  const event = { type: 'approval', payoutId: 'p', attempt: 0, at: AT };
  expect(await told()).toEqual([
    { ...event, id: `p#0#approval#ann#${Date.parse(AT)}`, decision: 'approve', by: 'ann' },
    { ...event, id: `p#0#approval#bob#${Date.parse(AT)}`, decision: 'reject', by: 'bob', reason: 'wrong address' },
  ]);
});

const unreject = (rejection: SignedApproval, by: string): SignedApproval =>
  approval(by, { decision: 'unreject', intent: hashApproval(account.connection.platformId, rejection) });

it('a rejection holds a payout at once, whatever comes after it, until it is taken back', async () => {
  const [anns, bobs] = [approval('ann', { decision: 'reject' }), approval('bob', { decision: 'reject', reason: 'no' })];
  await add(approval('ann'));
  await add(anns);
  await add(bobs);
  const held = { kind: 'rejection', message: expect.stringMatching(/^bob rejected it: no\. It is not sent until/) };
  expect(await account.ledger.require('p')).toMatchObject({ state: 'held', held });
  await expect(add(approval('ann'))).rejects.toThrow(/^The key ann rejected payout p before, which counts until its/);
  await account.ledger.change({ payoutId: 'p', from: 'held', to: 'queued' });
  await add(anns);
  expect(await account.ledger.require('p')).toMatchObject({ state: 'held', decisions: 3 });
  // A second one of the same key is another: neither replaces the other.
  const second = { ...anns, at: '2030-01-01T09:00:00.001Z' };
  await add(second);
  await add(unreject(anns, 'ann-2'));
  await add(unreject(bobs, 'bob'));
  expect(await account.ledger.require('p')).toMatchObject({ state: 'held' });
  await add(unreject(second, 'ann'));
  expect(await account.ledger.require('p')).toMatchObject({ state: 'queued' });
  await add(approval('ann'));
});

it('a rejection stays in the record whatever is signed again under the payoutId, and holds it', async () => {
  const [rejection, ann] = [approval('bob', { payoutId: 'q', decision: 'reject' }), approval('ann', { payoutId: 'q' })];
  const signature = { key: 'shop', signature: 's'.repeat(86), audience: 'test', expiresAt: '2020-01-08T00:00:00.000Z' };
  const enqueue = async (issuedAt: string): Promise<unknown> =>
    account.ledger.enqueue([{ ...aPayout('q'), signed: { ...signature, issuedAt } }]);
  await enqueue('2020-01-01T09:00:00.000Z');
  await add(ann);
  await add(rejection);
  await enqueue('2020-01-01T09:00:01.000Z');
  const issuedAt = '2020-01-01T09:00:01.000Z';
  expect(await account.ledger.require('q')).toMatchObject({
    state: 'held',
    approvals: [rejection],
    signed: { issuedAt },
  });
});

it('takes nothing in any other state', async () => {
  await expect(add(approval('ann', { payoutId: 'none' }))).rejects.toThrow(NotFoundError);
  await cancel();
  for (const decision of ['approve', 'reject'] as const) {
    const refusal = 'Payout p is cancelled: only a payout that is queued or held';
    await expect(add(approval('bob', { decision }))).rejects.toThrow(refusal);
  }
  expect(await approvals()).toBeUndefined();
});

it.each<[string, Partial<SignedApproval>, RegExp]>([
  [
    'a rejection that expires',
    { decision: 'reject', expiresAt: '2030-01-02T09:00:00.000Z' },
    /^expiresAt: must be absent/,
  ],
  ['an approval that names no address', { addressTo: undefined } as never, /^addressTo: is missing/],
  ['a rejection that names a payment', { decision: 'reject', ...PAYMENT }, /addressTo: must be absent where/],
  ['an approval of no intent', { intent: '' }, /^intent: is required where decision is approve/],
  [
    'an unrejection of nothing',
    { decision: 'unreject', intent: '' },
    /^intent: is required where decision is unreject/,
  ],
])('refuses what could not count: %s', async (_, change, message) => {
  await expect(add(approval('ann', change))).rejects.toThrow(message);
  expect(await approvals()).toBeUndefined();
});

it(`takes those of ${MAX_APPROVALS} keys, and a later one of each`, async () => {
  for (let number = 1; number <= MAX_APPROVALS; number += 1) await add(approval(`key-${number}`));
  await expect(add(approval('one-more'))).rejects.toThrow(/^Payout p has 40 of them, which is the most/);
  const later = approval('key-7', { at: '2030-01-01T10:00:00.000Z' });
  await add(later);
  expect(await approvals()).toHaveLength(MAX_APPROVALS);
  expect(await approvals()).toContainEqual(later);
});

it('refuses one that breaks a rule, or is too large', async () => {
  const tooLarge = { signature: '\u2028\n'.repeat(1_024).repeat(2) };
  await expect(add(approval('ann', tooLarge))).rejects.toThrow(/^approval: must be at most 5120 bytes/);
  await expect(add(approval('ann\nbob', { intent: 'AB' }))).rejects.toThrow(
    /intent: must be the SHA-256[^]*by: must be/,
  );
});

it('leaves out what someone put in that is no approval, or another key', async () => {
  await add(approval('ann'));
  await account.redis.hset(account.connection.keys.payout('p'), {
    ...{ 'approval:bob': JSON.stringify(approval('carol')), 'approval:dan': '{', 'approval:eve': '7' },
    'approval:fay': JSON.stringify({ ...approval('fay'), note: 'x' }),
  });
  expect(await approvals()).toEqual([approval('ann')]);
  for (const key of ['dan', 'eve']) await add(approval(key));
  expect(await approvals()).toHaveLength(3);
});

it('keeps approvals with the payout, and drops them where it is signed again', async () => {
  const signature = { key: 'shop', signature: 's'.repeat(86), audience: 'test', expiresAt: '2020-01-08T00:00:00.000Z' };
  const enqueue = async (issuedAt: string): Promise<unknown> =>
    account.ledger.enqueue([{ ...aPayout('q'), signed: { ...signature, issuedAt } }]);
  const ann = approval('ann', { payoutId: 'q' });
  await enqueue('2020-01-01T09:00:00.000Z');
  await add(ann);
  await enqueue('2020-01-01T09:00:00.000Z');
  expect(await approvals('q')).toHaveLength(1);
  await enqueue('2020-01-01T09:00:01.000Z');
  expect(await approvals('q')).toBeUndefined();
  await add(ann);
  await cancel('q');
  expect(await approvals('q')).toEqual([ann]);
});
