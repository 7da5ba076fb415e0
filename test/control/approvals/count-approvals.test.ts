import { describe, expect, it } from '@jest/globals';
import {
  type ApprovalCount,
  type ApprovedPayout,
  countApprovals,
  formatApproval,
} from '../../../src/control/approvals/approval.js';
import { signedApprovalSchema, type Approval, type SignedApproval } from '../../../src/ledger/control-record.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { keyEntry, keyringOf, testKey, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const DAY_MS = 86_400_000;
const iso = (ms: number): string => new Date(ms).toISOString();
const PAYOUT: ApprovedPayout = {
  ...{ platformId: 4242, payoutId: 'invoice-77', intent: 'ab'.repeat(32) },
  ...{ signedBy: 'shop', requestedBy: 'Rita' },
};

/** Keys by the number of their seed. */
const ENTRIES: readonly KeyEntry[] = [
  keyEntry(testKey(1), { name: 'shop', role: 'producer', person: 'Shop' }),
  keyEntry(testKey(2), { name: 'ann', role: 'approver', person: 'Ann' }),
  keyEntry(testKey(3), { name: 'ann-yubi', role: 'approver', person: 'Ann' }),
  keyEntry(testKey(4), { name: 'bob', role: 'approver', person: 'Bob' }),
  keyEntry(testKey(5), { name: 'rita', role: 'approver', person: 'Rita' }),
  keyEntry(testKey(6), { name: 'shop-boss', role: 'approver', person: 'Shop' }),
  keyEntry(testKey(7), { name: 'olga', role: 'operator', person: 'Olga' }),
  keyEntry(testKey(8), { name: 'old', role: 'approver', person: 'Old', notAfter: iso(NOW - DAY_MS) }),
  keyEntry(testKey(9), { name: 'stolen', role: 'approver', person: 'Stolen', revoked: true }),
];

function signed(by: string, change: Partial<Approval> = {}, platformId = 4242): SignedApproval {
  const approval: Approval = {
    audience: TEST_AUDIENCE,
    ...{ payoutId: PAYOUT.payoutId, intent: PAYOUT.intent, decision: 'approve', by },
    ...{ at: iso(NOW), expiresAt: iso(NOW + DAY_MS), ...change },
  };
  const seed = ENTRIES.findIndex(({ name }) => name === by) + 1;
  return { ...approval, signature: signText(formatApproval(platformId, approval), testKey(seed)) };
}

function count(approvals: readonly SignedApproval[], now = NOW + 1): ApprovalCount {
  return countApprovals(PAYOUT, approvals, { keyring: keyringOf(...ENTRIES), lifetimeMs: DAY_MS, now });
}

describe('approvals of a payout', () => {
  it('count persons, not keys', () => {
    const { approvedBy, rejectedBy } = count([signed('ann'), signed('ann-yubi'), signed('bob'), signed('bob')]);
    expect(approvedBy).toEqual(new Set(['ann', 'bob']));
    expect(rejectedBy).toBeUndefined();
  });

  it('are ended by one rejection, also by who approved before, or may not approve', () => {
    expect(count([signed('ann'), signed('ann', { decision: 'reject' }), signed('bob')]).rejectedBy).toBe('ann');
    expect(count([signed('rita', { decision: 'reject' })]).rejectedBy).toBe('rita');
  });

  it.each<[string, SignedApproval, RegExp]>([
    [
      'of who signed the payout, with another key',
      signed('shop-boss'),
      /shop asked for the payout, and cannot approve it/,
    ],
    ['of who asked for it', signed('rita'), /rita asked for the payout/],
    ['of another environment', signed('ann', { audience: 'staging' }), /is signed for "staging", and this is "test"/],
    ['of an earlier version', signed('ann', { audience: undefined }), /names no audience/],
    [
      'of another environment, renamed',
      { ...signed('ann', { audience: 'staging' }), audience: 'test' },
      /is not over it/,
    ],
    ['of a producer', signed('shop'), /has the role producer, not approver/],
    ['of an operator', signed('olga'), /has the role operator, not approver/],
    ['of a key that nobody knows', { ...signed('ann'), by: 'nobody' }, /"nobody" is not in the worker's keyring/],
    ['of a key that has ended', signed('old'), /outside the time of the key "old"/],
    ['of a key that was revoked', signed('stolen'), /"stolen" is revoked/],
    ['in the name of another', { ...signed('ann'), by: 'bob' }, /signature of key "bob" is not over it/],
    ['of another payout', signed('ann', { payoutId: 'invoice-78' }), /about another payout/],
    ['of another intent', signed('ann', { intent: 'cd'.repeat(32) }), /the payout was signed again since/],
    [
      'altered to another intent',
      { ...signed('ann', { intent: 'cd'.repeat(32) }), intent: PAYOUT.intent },
      /is not over it/,
    ],
    ['of another account', signed('ann', {}, 4243), /signature of key "ann" is not over it/],
    ['turned from a rejection', { ...signed('ann', { decision: 'reject' }), decision: 'approve' }, /is not over it/],
    ['that has expired', signed('ann', { expiresAt: iso(NOW + 1) }), /it expired at/],
    ['that holds for too long', signed('ann', { expiresAt: iso(NOW + DAY_MS + 1) }), /signed for too long/],
    ['of the future', signed('ann', { at: iso(NOW + DAY_MS), expiresAt: iso(NOW + DAY_MS + 2) }), /in the future/],
    ['with a line break', { ...signed('ann'), payoutId: 'invoice-77\nintent=' }, /^payoutId: must not contain/],
  ])('do not count one %s', (_, approval, message) => {
    const { approvedBy, rejectedBy, refused } = count([approval]);
    expect({ approvedBy, rejectedBy }).toEqual({ approvedBy: new Set(), rejectedBy: undefined });
    expect(refused).toEqual([{ by: approval.by, message: expect.stringMatching(message) }]);
  });

  it.each([
    'rita',
    'RITA',
    'Rita',
    'rita.',
    'r-ita',
    'Rita\u200b',
    '\u202erita',
    'R\u00edta',
    '\uff32ita',
    'Ri\u3164ta',
  ])('do not count one of who asked for it, whom the intent spells %s', (requestedBy) => {
    const { approvedBy, refused } = countApprovals({ ...PAYOUT, requestedBy }, [signed('rita')], {
      ...{ keyring: keyringOf(...ENTRIES), lifetimeMs: DAY_MS, now: NOW + 1 },
    });
    expect([approvedBy.size, refused[0]?.message]).toEqual([0, expect.stringContaining('rita asked for the payout')]);
  });

  it('are read from JSON of their own form only', () => {
    const approval = signed('ann');
    expect(signedApprovalSchema.safeParse(JSON.parse(JSON.stringify(approval))).success).toBe(true);
    for (const wrong of [
      { ...approval, decision: 'maybe' },
      { ...approval, note: 'x' },
      { ...approval, at: 'now' },
    ]) {
      expect(signedApprovalSchema.safeParse(wrong).success).toBe(false);
    }
  });

  it('have the text that every language makes', () => {
    const { signature, ...approval } = signed('ann');
    expect(signature).toHaveLength(86);
    expect(formatApproval(4242, approval)).toBe(
      `payout-queue approval v2\naudience=test\nplatformId=4242\npayoutId=invoice-77\nintent=${PAYOUT.intent}\ndecision=approve\nby=ann\nat=2026-11-21T20:00:00.000Z\nexpiresAt=2026-11-22T20:00:00.000Z\n`,
    );
  });
});
