import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { explainPayout, type Explanation, type WorkerReport } from '../../../src/control/operator/explain-payout.js';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { Approval, SignedApproval } from '../../../src/ledger/control-record.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import type { LoadedPolicy } from '../../../src/control/policy/policy-file.js';
import { parsePolicy } from '../../../src/control/policy/policy.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const PLATFORM = 4242;
const KEYRING = keyringOf(
  keyEntry(testKey(1)),
  keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' }),
  keyEntry(testKey(3), { name: 'bob', role: 'approver', person: 'bob' }),
  keyEntry(testKey(4), { name: 'rita', role: 'approver', person: 'Rita' }),
);
const POLICY: LoadedPolicy = {
  policy: parsePolicy(
    parse(
      `{ version: 1, platformId: ${PLATFORM}, default: send, groups: { finance: [alice, bob] }, approvals: { expireAfter: 24h },
         usd: { pinned: { "6": "1" } }, rules: [
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
const signed = new IntentSigner({
  key: { name: 'shop', privateKey: testKey(1) },
  platformId: PLATFORM,
  audience: TEST_AUDIENCE,
  clock: { wallNow: () => NOW },
}).sign(fields, {
  requestedBy: 'Rita',
});
const intent = hashIntent(intentOf(PLATFORM, fields, signed));
const iso = (ms: number): string => new Date(ms).toISOString();

function approvalOf(by: 'alice' | 'bob', changes: Partial<Approval> = {}): SignedApproval {
  const approval: Approval = {
    ...{
      audience: TEST_AUDIENCE,
      payoutId: 'p',
      intent,
      decision: 'approve',
      by,
      at: iso(NOW),
      expiresAt: iso(NOW + 3_600_000),
    },
    ...changes,
  };
  return { ...approval, signature: signText(formatApproval(PLATFORM, approval), testKey(by === 'alice' ? 2 : 3)) };
}

function explain(
  changes: Partial<Payout> = {},
  keyring: typeof KEYRING | 'none' = KEYRING,
  told?: WorkerReport,
): Explanation {
  const history = { history: [], createdAt: iso(NOW), updatedAt: iso(NOW), attempt: 0, requeueCount: 0 };
  return explainPayout(
    { ...fields, ...history, state: 'held', signed, ...changes },
    POLICY,
    keyring === 'none' ? undefined : keyring,
    NOW + 1,
    told,
  );
}

const verdictOf = ({ decision }: Explanation, name: string): object | undefined =>
  decision.all.find(({ rule }) => rule === name);

describe('what a host that sends nothing says of a payout', () => {
  it('counts the approvals that it carries, and says which do not count', () => {
    const one = explain({ approvals: [approvalOf('alice')] });
    expect(verdictOf(one, 'two')).toMatchObject({ kind: 'approve', missing: 1 });
    expect([...one.approvals.approvedBy]).toEqual(['alice']);
    const both = explain({ approvals: [approvalOf('alice'), approvalOf('bob')] });
    expect(verdictOf(both, 'two')).toMatchObject({ kind: 'send' });
    const stale = explain({ approvals: [approvalOf('bob', { intent: 'ab'.repeat(32) })] });
    expect(stale.approvals.refused).toMatchObject([{ by: 'bob' }]);
    const no = explain({ approvals: [approvalOf('alice'), approvalOf('bob', { decision: 'reject' })] });
    expect(verdictOf(no, 'two')).toMatchObject({ kind: 'refuse', reason: 'bob rejected it' });
  });

  it('counts no approval of what is not verified', () => {
    const altered = explain({ amount: '12.6', approvals: [approvalOf('alice'), approvalOf('bob')] });
    expect(altered.unverified).toMatch(/was altered/);
    expect(verdictOf(altered, 'two')).toMatchObject({ kind: 'approve', missing: 2 });
  });

  it('takes an address for new, and says so', () => {
    const { unknown, decision } = explain();
    expect(decision.all).toContainEqual(
      expect.objectContaining({ rule: 'cool', kind: 'wait', until: NOW + 1 + 86_400_000 }),
    );
    expect(unknown).toEqual(['when its address was first seen: it counts as seen now']);
  });

  it('asks the lists', () => {
    expect(verdictOf(explain({ addressTo: 'txyz-denied' }), 'listed')).toMatchObject({ kind: 'refuse' });
    expect(verdictOf(explain(), 'listed')).toBeUndefined();
  });

  it('says nothing of signatures without a keyring', () => {
    const { unverified, approvals } = explain({ approvals: [approvalOf('alice')] }, 'none');
    expect(unverified).toBeUndefined();
    expect(approvals.approvedBy.size).toBe(0);
  });
});

describe('with what the worker told', () => {
  const told = (spent: string, rates: WorkerReport['rates'] = [[7, '2']]): WorkerReport => ({
    ...{ at: NOW - 5_000, rates },
    windows: [
      {
        ...{ rule: 'wallet', unit: 'usd', limit: '100.00', withinMs: 86_400_000, per: 'address', unknown: null },
        buckets: [
          { bucket: 'other', spent: '99.00', wanted: '0.00', ratio: 0.99 },
          { bucket: 'txyz9', spent, wanted: '0.00', ratio: 0 },
        ],
      },
    ],
  });
  const walletOf = (...given: Parameters<typeof told>): object | undefined =>
    verdictOf(explain({ paymentId: 7, addressTo: 'txyz9' }, 'none', told(...given)), 'wallet');

  it('counts the window of this very address, at the rate that Redis has, and equality passes', () => {
    expect(walletOf('75.00')).toMatchObject({ kind: 'send' });
    expect(walletOf('75.000001')).toMatchObject({ kind: 'wait', reason: expect.stringContaining('it is 25.00 USD') });
  });

  it('says that more may have been spent since', () => {
    const { unknown } = explain({ paymentId: 7, addressTo: 'txyz9' }, 'none', told('1.00'));
    expect(unknown).toContain(
      'what was spent since the worker published it at 2026-11-21T19:59:55.000Z, and who waits before it',
    );
  });

  it.each(['', '1e9', '-5', '<b>', '9'.repeat(60)])('takes %j for nothing that was told', (spent) => {
    expect(walletOf(spent)).toMatchObject({ kind: 'send' });
  });

  it('takes a rate that is none for none', () => {
    expect(walletOf('1.00', [[7, 'much']])).toMatchObject({
      kind: 'wait',
      reason: expect.stringContaining('not known'),
    });
  });
});
