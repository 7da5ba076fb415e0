import { beforeEach, describe, expect, it } from '@jest/globals';
import { parsePolicy } from '../../../src/control/policy/policy.js';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { entryOf, HOUR_MS, intentHashOf, iso, PLATFORM, signApproval, signIntent } from '../support/signed.js';
import { DOUBT_MS, HOURLY, PolicyRig, TestClock } from './support.js';

const KEYRING = keyringOf(
  keyEntry(testKey(1)),
  ...[entryOf(2, 'alice', 'approver'), entryOf(3, 'bob', 'approver')],
  entryOf(4, 'alice-2', 'approver', { person: 'Alice' }),
);
const KEYS = { alice: 2, bob: 3, 'alice-2': 4 };
const FOUR_EYES = parsePolicy({
  ...{ version: '1', platformId: String(PLATFORM), default: 'send', groups: { finance: ['Alice', 'Bob'] } },
  rules: [{ ...HOURLY, name: 'four-eyes', cap: { amount: '50' }, over: { approve: { by: 'finance', quorum: '2' } } }],
});

let clock: TestClock;
let rig: PolicyRig;
beforeEach(() => {
  clock = new TestClock();
  const about = { platformId: PLATFORM, keyring: KEYRING, clock, doubtMs: DOUBT_MS };
  const signatures = new SignedAuthority({ ...about, journal: new MemoryJournal() });
  rig = new PolicyRig(clock, FOUR_EYES, { keyring: KEYRING, signatures });
});

function signed(amount: string, requestedBy?: string): Payout {
  const payout = rig.payout('a', amount);
  return { ...payout, signed: signIntent(payout, { at: clock.wallNow(), requestedBy }) };
}

function approval(payout: Payout, by: keyof typeof KEYS, decision: 'approve' | 'reject' = 'approve'): SignedApproval {
  const times = { at: iso(clock.wallNow()), expiresAt: iso(clock.wallNow() + HOUR_MS) };
  const about = { audience: TEST_AUDIENCE, payoutId: 'a', intent: intentHashOf(payout), ...times };
  return signApproval(KEYS[by], { ...about, decision, by });
}
/** With what alice and bob say. */
const approved = (payout: Payout, ...more: SignedApproval[]): Payout => ({
  ...{ ...payout, approvals: [approval(payout, 'alice'), approval(payout, 'bob'), ...more] },
});
const rejected = (payout: Payout): Payout => approved(payout, approval(payout, 'bob', 'reject'));
const journaled = () => rig.lines.filter((line) => 'rejected' in line);

it('approvals of as many people as the rule says let it pass, asked for before its turn; the journal names them', () => {
  const payout = signed('50.1');
  expect(rig.authority.checkEarly(payout)).toMatchObject({ needs: { by: 'finance', persons: 2 } });
  expect(rig.authority.checkEarly(signed('50'))).toBeUndefined();
  const one = [approval(payout, 'alice'), approval(payout, 'alice-2')];
  expect(rig.ask({ ...payout, approvals: one })).toMatch(/^approve: .*1 more person/);
  const judged = { approvals: [expect.any(String), expect.any(String)] };
  expect(rig.authority.permit(approved(payout))).toMatchObject({ kind: 'granted', counted: { judged } });
  // Of a person whom nobody of the keyring knows, it is held, also early.
  const strange = approved(signed('60', '\u0412ob'));
  expect(rig.ask(strange)).toMatch(/^refuse: .*no key of the keyring is of the person in requestedBy.*\("\\u0412ob"\)/);
  expect(rig.authority.checkEarly(strange)).toMatchObject({ reason: 'refuse', rule: 'four-eyes' });
});

describe('a rejection that the worker saw', () => {
  let payout: Payout;
  beforeEach(async () => {
    payout = signed('60');
    expect(rig.ask(rejected(payout))).toMatch(/^refuse: .*bob rejected it/);
    await rig.authority.keepRejections();
  });

  it('is journaled once, and counts whatever Redis says later, also after a restart, until it expires', async () => {
    rig.ask(rejected(payout));
    await rig.authority.keepRejections();
    const line = { payoutId: 'a', by: 'bob', expiresAt: clock.wallNow() + HOUR_MS };
    expect(journaled()).toEqual([{ rejected: expect.objectContaining(line) }]);
    rig.restart();
    expect(rig.ask(approved(payout))).toMatch(/^refuse: .*bob rejected it/);
    expect(rig.authority.checkEarly(approved(payout))).toMatchObject({ reason: 'refuse' });
    clock.pass(HOUR_MS);
    expect(rig.ask(approved(payout))).toBe('send');
  });

  it('counts for that intent alone, and says no to what was signed and approved before', async () => {
    const before = approved(signed('61'));
    expect(rig.ask(before)).toBe('send');
    clock.pass(1_000);
    rig.ask(rejected(signed('62')));
    await rig.authority.keepRejections();
    expect(rig.ask(before)).toMatch(/^refuse: .*bob rejected it/);
  });

  it('is journaled again where the write failed', async () => {
    rig.ask(rejected(signed('61')));
    rig.journal.failWith = new Error('no space left on device');
    await expect(rig.authority.keepRejections()).rejects.toThrow('no space left');
    rig.journal.failWith = undefined;
    await rig.authority.keepRejections();
    expect(journaled()).toHaveLength(2);
  });
});

it('a rejection that is signed as an approval is not journaled', async () => {
  const payout = signed('60');
  rig.ask({ ...payout, approvals: [{ ...approval(payout, 'bob'), decision: 'reject' }] });
  await rig.authority.keepRejections();
  expect(journaled()).toEqual([]);
});
