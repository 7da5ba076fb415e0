import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { explainPayout, type Explanation, type WorkerReport } from '../../../src/control/operator/explain-payout.js';
import type { LoadedPolicy } from '../../../src/control/policy/policy-file.js';
import { parsePolicy } from '../../../src/control/policy/policy.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { DAY_MS, entryOf, intentHashOf, iso, NOW, PLATFORM, signApproval, signIntent } from '../support/signed.js';

/** What a host that sends nothing says of a payout. */

const KEYRING = keyringOf(
  keyEntry(testKey(1)),
  ...['alice', 'bob', 'rita'].map((name, n) => entryOf(n + 2, name, 'approver')),
);
const RULES = `{ version: 1, platformId: ${PLATFORM}, default: send, groups: { finance: [alice, bob] }, usd: { pinned: { "6": "1" } },
  rules: [
    { name: two, cap: { usd: "5" }, over: { approve: { by: finance, quorum: 2 } } },
    { name: cool, when: { address: new }, over: { wait: 24h } },
    { name: wallet, when: { paymentId: ["7"] }, cap: { usd: "100", within: 24h, per: address }, over: wait } ] }`;
const POLICY: LoadedPolicy = {
  policy: parsePolicy(parse(RULES, { schema: 'failsafe' })),
  ...{ hash: '', file: '', warnings: [], isListed: () => false },
};
const fields = { payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'TXYZ9', requestedBy: 'Rita' };
const signed = signIntent(fields, { requestedBy: 'Rita' });

function approvalOf(key: 2 | 3, decision: 'approve' | 'reject' = 'approve'): SignedApproval {
  const times = { at: iso(NOW), expiresAt: iso(NOW + DAY_MS) };
  const about = { audience: TEST_AUDIENCE, payoutId: 'p', intent: intentHashOf({ ...fields, signed }) };
  return signApproval(key, { ...about, ...times, decision, by: key === 2 ? 'alice' : 'bob' });
}

function explain(changes: Partial<Payout> = {}, keyring: typeof KEYRING | 'none' = KEYRING, told?: WorkerReport) {
  const history = { history: [], createdAt: iso(NOW), updatedAt: iso(NOW), attempt: 0, requeueCount: 0 };
  const payout: Payout = { ...fields, ...history, state: 'held', signed, ...changes };
  return explainPayout(payout, POLICY, keyring === 'none' ? undefined : keyring, NOW + 1, told);
}
const verdictOf = ({ decision }: Explanation, name: string): object | undefined =>
  decision.all.find(({ rule }) => rule === name);

it('counts approvals and rejections, and none of what is not verified; takes an address for new, and says so', () => {
  const approvals = [approvalOf(2), approvalOf(3)];
  const rejected = explain({ approvals: [...approvals, approvalOf(3, 'reject')] });
  expect(verdictOf(rejected, 'two')).toMatchObject({ reason: 'bob rejected it' });
  expect(verdictOf(explain({ approvals }), 'two')).toMatchObject({ kind: 'send' });
  const altered = explain({ amount: '12.6', approvals });
  expect(verdictOf(altered, 'two')).toMatchObject({ kind: 'approve', missing: 2 });
  expect(altered.unverified).toMatch(/was altered/);
  expect(() => explain({ amount: '-1' })).toThrow('A field of payout p was altered: amount (got "-1")');
  expect(explain({ approvals }, 'none').approvals.approvedBy.size).toBe(0);
  expect(verdictOf(altered, 'cool')).toMatchObject({ kind: 'wait', until: NOW + 1 + DAY_MS });
  expect(altered.unknown).toEqual(['when its address was first seen: it counts as seen now']);
});

describe('with what the worker told', () => {
  const explainWith = (spent: string, rate = '2'): Explanation => {
    const about = { rule: 'wallet', unit: 'usd', limit: '100.00', withinMs: DAY_MS, per: 'address' } as const;
    const bucketOf = (bucket: string, sum: string) => ({ bucket, spent: sum, wanted: '0.00', ratio: 0.5 });
    const windows = [{ ...about, unknown: null, buckets: [bucketOf('other', '99.00'), bucketOf('txyz9', spent)] }];
    return explain({ paymentId: 7, addressTo: 'txyz9' }, 'none', { at: NOW - 5_000, rates: [[7, rate]], windows });
  };

  it.each([
    ['equality passes', '75.00', '2', { kind: 'send' }],
    ['a millionth more waits', '75.000001', '2', { kind: 'wait', reason: expect.stringContaining('it is 25.00 USD') }],
    ['a rate that is none is none', '1.00', 'much', { kind: 'wait', reason: expect.stringContaining('not known') }],
    ...['1e9', '-5', '9'.repeat(60)].map((spent) => [`${spent} is nothing`, spent, '2', { kind: 'send' }] as const),
  ])('counts the window of this very address, at the rate that Redis has: %s', (_, spent, rate, verdict) => {
    const explanation = explainWith(spent, rate);
    expect(verdictOf(explanation, 'wallet')).toMatchObject(verdict);
    expect(explanation.unknown.join()).toContain('since the worker published it at 2026-11-21T19:59:55.000Z');
  });
});
