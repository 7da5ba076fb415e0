import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { explainPayout, type Explanation, type WorkerReport } from '../../../src/control/operator/explain-payout.js';
import type { LoadedPolicy } from '../../../src/control/policy/policy-file.js';
import { parsePolicy } from '../../../src/control/policy/policy.js';
import type { Approval, SignedApproval } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import {
  DAY_MS,
  entryOf,
  HOUR_MS,
  intentHashOf,
  iso,
  NOW,
  PLATFORM,
  signApproval,
  signIntent,
} from '../support/signed.js';

const KEYS = { alice: 2, bob: 3 };
const KEYRING = keyringOf(
  keyEntry(testKey(1)),
  ...[entryOf(2, 'alice', 'approver'), entryOf(3, 'bob', 'approver'), entryOf(4, 'rita', 'approver')],
);
const POLICY: LoadedPolicy = {
  policy: parsePolicy(
    parse(
      `{ version: 1, platformId: ${PLATFORM}, default: send, groups: { finance: [alice, bob] }, usd: { pinned: { "6": "1" } },
         approvals: { expireAfter: 24h }, rules: [
         { name: two, cap: { usd: "5" }, over: { approve: { by: finance, quorum: 2 } } },
         { name: cool, when: { address: new }, over: { wait: 24h } },
         { name: wallet, when: { paymentId: ["7"] }, cap: { usd: "100", within: 24h, per: address }, over: wait },
         { name: listed, when: { addressIn: deny.txt }, over: refuse } ] }`,
      { schema: 'failsafe' },
    ),
  ),
  ...{ hash: '', file: '', warnings: [], isListed: (_, key) => key === 'txyz-denied' },
};
const fields = { payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', requestedBy: 'Rita' };
const signed = signIntent(fields, { requestedBy: 'Rita' });
const intent = intentHashOf({ ...fields, signed });

function approvalOf(by: keyof typeof KEYS, changes: Partial<Approval> = {}): SignedApproval {
  const times = { at: iso(NOW), expiresAt: iso(NOW + HOUR_MS) };
  const approval: Approval = { audience: TEST_AUDIENCE, payoutId: 'p', intent, decision: 'approve', by, ...times };
  return signApproval(KEYS[by], { ...approval, ...changes });
}

function explain(
  changes: Partial<Payout> = {},
  keyring: typeof KEYRING | 'none' = KEYRING,
  told?: WorkerReport,
): Explanation {
  const history = { history: [], createdAt: iso(NOW), updatedAt: iso(NOW), attempt: 0, requeueCount: 0 };
  const payout: Payout = { ...fields, ...history, state: 'held', signed, ...changes };
  return explainPayout(payout, POLICY, keyring === 'none' ? undefined : keyring, NOW + 1, told);
}

const verdictOf = ({ decision }: Explanation, name: string): object | undefined =>
  decision.all.find(({ rule }) => rule === name);

describe('what a host that sends nothing says of a payout', () => {
  const both = [approvalOf('alice'), approvalOf('bob')];
  it.each<[string, Partial<Payout>, object]>([
    ['one approval', { approvals: [approvalOf('alice')] }, { kind: 'approve', missing: 1 }],
    ['both', { approvals: both }, { kind: 'send' }],
    ['a rejection', { approvals: [...both, approvalOf('bob', { decision: 'reject' })] }, { reason: 'bob rejected it' }],
    ['approvals of what is not verified', { amount: '12.6', approvals: both }, { kind: 'approve', missing: 2 }],
  ])('counts %s', (_, changes, verdict) => {
    expect(verdictOf(explain(changes), 'two')).toMatchObject(verdict);
  });

  it('says who approved, which approvals do not count, and what was altered', () => {
    const approvals = [approvalOf('alice'), approvalOf('bob', { intent: 'ab'.repeat(32) })];
    const { approvedBy, refused } = explain({ approvals }).approvals;
    expect([[...approvedBy], refused]).toMatchObject([['alice'], [{ by: 'bob' }]]);
    expect(explain({ amount: '12.6' }).unverified).toMatch(/was altered/);
  });

  it('takes an address for new, and says so', () => {
    const explanation = explain();
    expect(verdictOf(explanation, 'cool')).toMatchObject({ kind: 'wait', until: NOW + 1 + DAY_MS });
    expect(explanation.unknown).toEqual(['when its address was first seen: it counts as seen now']);
  });

  it('asks the lists', () => {
    expect(verdictOf(explain({ addressTo: 'txyz-denied' }), 'listed')).toMatchObject({ kind: 'refuse' });
    expect(verdictOf(explain(), 'listed')).toBeUndefined();
  });

  it('says nothing of signatures without a keyring', () => {
    const { unverified, approvals } = explain({ approvals: both }, 'none');
    expect([unverified, approvals.approvedBy.size]).toEqual([undefined, 0]);
  });
});

describe('with what the worker told', () => {
  const explainWith = (spent: string, rate = '2'): Explanation => {
    const about = {
      rule: 'wallet',
      unit: 'usd',
      limit: '100.00',
      withinMs: DAY_MS,
      per: 'address',
      unknown: null,
    } as const;
    const bucketOf = (bucket: string, sum: string) => ({ bucket, spent: sum, wanted: '0.00', ratio: 0.5 });
    const windows = [{ ...about, buckets: [bucketOf('other', '99.00'), bucketOf('txyz9', spent)] }];
    return explain({ paymentId: 7, addressTo: 'txyz9' }, 'none', { at: NOW - 5_000, rates: [[7, rate]], windows });
  };

  it.each([
    ['equality passes', '75.00', '2', { kind: 'send' }],
    ['a millionth more waits', '75.000001', '2', { kind: 'wait', reason: expect.stringContaining('it is 25.00 USD') }],
    ['a rate that is none is none', '1.00', 'much', { kind: 'wait', reason: expect.stringContaining('not known') }],
    ...['', '1e9', '-5', '<b>', '9'.repeat(60)].map(
      (spent) => [`${spent} is nothing`, spent, '2', { kind: 'send' }] as const,
    ),
  ])('counts the window of this very address, at the rate that Redis has: %s', (_, spent, rate, verdict) => {
    expect(verdictOf(explainWith(spent, rate), 'wallet')).toMatchObject(verdict);
  });

  it('says that more may have been spent since', () => {
    expect(explainWith('1.00').unknown).toContain(
      'what was spent since the worker published it at 2026-11-21T19:59:55.000Z, and who waits before it',
    );
  });
});
