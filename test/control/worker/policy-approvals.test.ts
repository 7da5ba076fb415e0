import { beforeEach, describe, expect, it } from '@jest/globals';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { ApprovalDecision, SignedApproval } from '../../../src/ledger/control-record.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { parsePolicy } from '../../../src/control/policy/policy.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { DOUBT_MS, PLATFORM_ID, PolicyRig, TestClock } from './support.js';

const HOUR_MS = 3_600_000;

let clock: TestClock;

describe('approvals', () => {
  const [SHOP, ALICE, BOB] = [testKey(1), testKey(2), testKey(3)];
  const KEYRING = keyringOf(
    keyEntry(SHOP, { person: 'Shop' }),
    keyEntry(ALICE, { name: 'alice', role: 'approver', person: 'Alice' }),
    keyEntry(testKey(4), { name: 'alice-2', role: 'approver', person: 'Alice' }),
    keyEntry(BOB, { name: 'bob', role: 'approver', person: 'Bob' }),
  );
  const KEYS = { alice: ALICE, 'alice-2': testKey(4), bob: BOB };
  const FOUR_EYES = parsePolicy({
    ...{ version: '1', platformId: String(PLATFORM_ID), default: 'send', groups: { finance: ['Alice', 'Bob'] } },
    rules: [
      {
        name: 'four-eyes',
        when: { paymentId: ['6'] },
        cap: { amount: '50' },
        over: { approve: { by: 'finance', quorum: '2' } },
      },
    ],
  });

  let rig: PolicyRig;
  beforeEach(() => {
    clock = new TestClock();
    const journal = new MemoryJournal();
    const about = { platformId: PLATFORM_ID, keyring: KEYRING, clock, doubtMs: DOUBT_MS };
    const signatures = new SignedAuthority({ ...about, journal });
    rig = new PolicyRig(clock, FOUR_EYES, { keyring: KEYRING, signatures });
  });

  function signed(amount: string, requestedBy?: string): Payout {
    const payout = rig.payout('a', amount);
    const key = { name: 'shop', privateKey: SHOP };
    const signer = new IntentSigner({ key, platformId: PLATFORM_ID, audience: TEST_AUDIENCE, clock });
    return { ...payout, signed: signer.sign(payout, { requestedBy }) };
  }

  function approval(payout: Payout, by: keyof typeof KEYS, decision: ApprovalDecision = 'approve'): SignedApproval {
    if (payout.signed === undefined) throw new Error('it is not signed');
    const content = {
      audience: TEST_AUDIENCE,
      ...{ payoutId: payout.payoutId, intent: hashIntent(intentOf(PLATFORM_ID, payout, payout.signed)), decision, by },
      ...{ at: new Date(clock.wallNow()).toISOString(), expiresAt: new Date(clock.wallNow() + HOUR_MS).toISOString() },
    };
    return { ...content, signature: signText(formatApproval(PLATFORM_ID, content), KEYS[by]) };
  }

  it('of as many people as the rule says let it pass, and the journal names them', () => {
    const payout = signed('50.1');
    expect(rig.ask(payout)).toMatch(/^approve: .*2 more people of the group finance must approve it/);
    const one = approval(payout, 'alice');
    expect(rig.ask({ ...payout, approvals: [one, approval(payout, 'alice-2')] })).toMatch(/^approve: .*1 more person/);
    const permit = rig.authority.permit({ ...payout, approvals: [one, approval(payout, 'bob')] });
    expect(permit).toMatchObject({
      kind: 'granted',
      counted: { judged: { approvals: [expect.any(String), expect.any(String)] } },
    });
  });

  it('of another amount, or that have expired, do not', () => {
    const payout = signed('60');
    const approvals = [approval(payout, 'alice'), approval(payout, 'bob')];
    expect(rig.ask({ ...signed('61'), approvals })).toMatch(/^approve: .*2 more people/);
    clock.pass(HOUR_MS);
    expect(rig.ask({ ...payout, approvals })).toMatch(/^approve: .*2 more people/);
  });

  it('one rejection ends it', () => {
    const payout = signed('60');
    const approvals = [approval(payout, 'alice'), approval(payout, 'bob'), approval(payout, 'bob', 'reject')];
    expect(rig.ask({ ...payout, approvals })).toMatch(/^refuse: .*bob rejected it/);
  });

  it.each([
    ['bob', 'Bob'],
    ['another case', 'BOB'],
  ])('of who asked for it, as %s, do not count', (_, requestedBy) => {
    const payout = signed('60', requestedBy);
    const approvals = [approval(payout, 'alice'), approval(payout, 'bob')];
    expect(rig.ask({ ...payout, approvals })).toMatch(/^approve: .*1 more person/);
  });

  it.each([
    ['nobody of the keyring', 'carol', /\("carol"\)/],
    ['a zero-width space', 'Bob\u200b', /\("Bob\\u200b"\)/],
    ['a Cyrillic letter', '\u0412ob', /\("\\u0412ob"\)/],
    ['what a terminal shows as another text', '\u202ebob', /\("\\u202ebob"\)/],
  ])('are not enough where %s asked for it: it is held, also early', (_, requestedBy, shown) => {
    const payout = signed('60', requestedBy);
    const approvals = [approval(payout, 'alice'), approval(payout, 'bob')];
    expect(rig.ask({ ...payout, approvals })).toMatch(shown);
    expect(rig.ask({ ...payout, approvals })).toMatch(
      /^refuse: .*no key of the keyring is of the person in requestedBy/,
    );
    expect(rig.authority.checkEarly({ ...payout, approvals })).toMatchObject({ reason: 'refuse', rule: 'four-eyes' });
    expect(rig.authority.permit(signed('50', requestedBy))).toMatchObject({ kind: 'granted' });
  });

  describe('a rejection that the worker saw', () => {
    let payout: Payout;
    let approved: Payout;

    beforeEach(async () => {
      payout = signed('60');
      const approvals = [approval(payout, 'alice'), approval(payout, 'bob')];
      approved = { ...payout, approvals };
      rig.ask({ ...payout, approvals: [...approvals, approval(payout, 'bob', 'reject')] });
      await rig.authority.keepRejections();
    });

    it('counts whatever Redis says later, also after a restart, until it expires', () => {
      for (const isRestarted of [false, true]) {
        if (isRestarted) rig.restart();
        expect(rig.ask(approved)).toMatch(/^refuse: .*bob rejected it/);
        expect(rig.ask(payout)).toMatch(/^refuse: .*bob rejected it/);
        expect(rig.authority.checkEarly(approved)).toMatchObject({ reason: 'refuse' });
      }
      clock.pass(HOUR_MS);
      const again = { ...payout, approvals: [approval(payout, 'alice'), approval(payout, 'bob')] };
      expect(rig.ask(again)).toBe('send');
    });

    it('is journaled once, and counts for that intent alone', async () => {
      rig.ask({ ...payout, approvals: [approval(payout, 'bob', 'reject')] });
      await rig.authority.keepRejections();
      expect(rig.lines.filter((line) => 'rejected' in line)).toEqual([
        { rejected: expect.objectContaining({ payoutId: 'a', by: 'bob', expiresAt: clock.wallNow() + HOUR_MS }) },
      ]);
      const other = signed('61');
      expect(rig.ask({ ...other, approvals: [approval(other, 'alice'), approval(other, 'bob')] })).toBe('send');
    });

    it('says no to what was signed and approved before, and is put back into Redis', async () => {
      const older = signed('61');
      const approvedBefore = { ...older, approvals: [approval(older, 'alice'), approval(older, 'bob')] };
      expect(rig.ask(approvedBefore)).toBe('send');
      clock.pass(1_000);
      const renewed = signed('62');
      rig.ask({ ...renewed, approvals: [approval(renewed, 'bob', 'reject')] });
      await rig.authority.keepRejections();
      expect(rig.ask(approvedBefore)).toMatch(/^refuse: .*bob rejected it/);
    });

    it('is journaled again where the write failed', async () => {
      const other = signed('61');
      rig.ask({ ...other, approvals: [approval(other, 'bob', 'reject')] });
      rig.journal.failWith = new Error('no space left on device');
      await expect(rig.authority.keepRejections()).rejects.toThrow('no space left');
      rig.journal.failWith = undefined;
      await rig.authority.keepRejections();
      expect(rig.lines.filter((line) => 'rejected' in line)).toHaveLength(2);
    });
  });

  it.each([
    ['of another payout', { payoutId: 'b' }],
    ['that has expired', { expiresAt: new Date(0).toISOString() }],
    ['whose signature is of another text', { decision: 'reject' as const }],
  ])('a rejection %s is not journaled', async (_, change) => {
    const payout = signed('60');
    const forged = { ...approval(payout, 'bob'), ...change };
    rig.ask({ ...payout, approvals: [{ ...forged, decision: 'reject' }] });
    await rig.authority.keepRejections();
    expect(rig.lines.filter((line) => 'rejected' in line)).toEqual([]);
  });

  it('are asked for before its turn', () => {
    const payout = signed('60');
    expect(rig.authority.checkEarly(payout)).toMatchObject({ needs: { by: 'finance', persons: 2 } });
    expect(rig.authority.checkEarly(signed('50'))).toBeUndefined();
  });
});
