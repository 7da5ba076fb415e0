import { describe, expect, it } from '@jest/globals';
import { formatAct, verifyAct, type Act } from '../../../src/control/approvals/act.js';
import { countApprovals, formatApproval } from '../../../src/control/approvals/approval.js';
import { formatIntent, hashIntent, type Intent } from '../../../src/control/intents/intent.js';
import { verifyIntent } from '../../../src/control/intents/verify-intent.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import type { KeyRole } from '../../../src/control/keys/keyring.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey, type KeyEntry } from '../support/keys.js';
import { DAY_MS, iso, MINUTE_MS, NOW, PLATFORM } from '../support/signed.js';

/** When a signature counts, to the millisecond. Test/forging has who may not sign, and what was altered. */

/** What is not as it should be. */
interface Given {
  readonly at?: string;
  readonly expiresAt?: string;
  /** After it was signed. */
  readonly altered?: Partial<Intent>;
  readonly entry?: Partial<KeyEntry>;
  readonly name?: string;
  readonly now?: number;
}
const NOW_1 = NOW + 1;
const keysOf = (role: KeyRole, entry: Partial<KeyEntry> = {}) => keyringOf(keyEntry(testKey(1), { role, ...entry }));
const timesOf = ({ at = iso(NOW), expiresAt = iso(NOW + DAY_MS) }: Given) => ({ at, expiresAt });
const stated = { audience: TEST_AUDIENCE, payoutId: 'p', intent: 'ab'.repeat(32), by: 'shop' };

function intentOf(given: Given): Intent {
  const { at: issuedAt, expiresAt } = timesOf(given);
  const payment = { payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'wallet' };
  return { ...payment, audience: TEST_AUDIENCE, platformId: PLATFORM, issuedAt, expiresAt };
}
function verdictOf(given: Given) {
  const { name: key = 'shop', now = NOW_1, entry, altered } = given;
  const intent = intentOf(given);
  const signature = signText(formatIntent(intent), testKey(1));
  return verifyIntent({ ...intent, ...altered }, { key, signature }, keysOf('producer', entry), now);
}
const judgeIntent = (given: Given): string => {
  const verdict = verdictOf(given);
  return verdict.kind === 'verified' ? 'counts' : verdict.fault;
};

function judgeAct(given: Given): string {
  const act: Act = { ...stated, ...timesOf(given), act: 'resend', attempt: 1, reason: 'ticket 813' };
  const signed = { ...act, signature: signText(formatAct(PLATFORM, act), testKey(1)) };
  const verdict = verifyAct(PLATFORM, signed, act, keysOf('operator', given.entry), given.now ?? NOW_1);
  return verdict.kind === 'verified' ? 'counts' : verdict.message;
}

function judgeApproval(given: Given): string {
  const approval = { ...stated, ...timesOf(given), decision: 'approve' } as const;
  const signed = { ...approval, signature: signText(formatApproval(PLATFORM, approval), testKey(1)) };
  const rule = { keyring: keysOf('approver', given.entry), lifetimeMs: 7 * DAY_MS, now: given.now ?? NOW_1 };
  const payout = { ...stated, platformId: PLATFORM, signedBy: 'x', requestedBy: undefined };
  const { refused, counted } = countApprovals(payout, [signed], rule);
  return counted.length > 0 ? 'counts' : (refused[0]?.message ?? '');
}

const KEY_TIME = 'it was issued outside the time of the key "shop"';
it.each<[string, Given, fault: string, message: RegExp]>([
  ['the first ms of the key', { entry: { notBefore: iso(NOW) } }, 'counts', /^counts$/],
  ['a ms before the key', { entry: { notBefore: iso(NOW + 1) } }, 'key_not_valid', new RegExp(`^${KEY_TIME}`)],
  ['a key that ended since', { entry: { notAfter: iso(NOW) }, now: NOW + DAY_MS - 1 }, 'counts', /^counts$/],
  ['a ms after the key', { entry: { notAfter: iso(NOW - 1) } }, 'key_not_valid', new RegExp(`^${KEY_TIME}`)],
  ['5 minutes ahead', { now: NOW - 5 * MINUTE_MS }, 'counts', /^counts$/],
  ['5 minutes and 1 ms ahead', { now: NOW - 5 * MINUTE_MS - 1 }, 'issued_in_future', /which is in the future$/],
  ['a clock that is none', { now: NaN }, 'issued_in_future', /which is in the future$/],
  ['the time of its end', { now: NOW + DAY_MS }, 'expired', /^it expired at /],
  ['an end before the beginning', { expiresAt: iso(NOW - 1) }, 'expired', /^it expired at /],
  ['a lifetime of 7 days', { expiresAt: iso(NOW + 7 * DAY_MS) }, 'counts', /^counts$/],
  [
    'a lifetime of 7 days and 1 ms',
    { expiresAt: iso(NOW + 7 * DAY_MS + 1) },
    'lifetime',
    /^it is signed for too long$/,
  ],
  ['times without milliseconds', { at: '2026-11-21T20:00:00Z' }, 'counts', /^counts$/],
])('the signature of an intent, an act and an approval with %s', (_, given, fault, message) => {
  expect(judgeIntent(given)).toBe(fault);
  for (const judge of [judgeAct, judgeApproval]) expect(judge(given)).toMatch(message);
});

describe('verifyIntent', () => {
  it('names the hash and the signer of what it verified, and calls what has no signature no tampering', () => {
    const verified = { kind: 'verified', intentHash: hashIntent(intentOf({})), signer: { name: 'shop' } };
    expect(verdictOf({})).toMatchObject(verified);
    const unsigned = verifyIntent(intentOf({}), undefined, keyringOf(), NOW);
    expect(unsigned).toMatchObject({ fault: 'unsigned', isTampering: false });
  });

  it.each([
    ...['', '2026-11-21T20:00:00', '2026-11-21T20:00:00+00:00', '2026-11-21 20:00:00Z', '2026-13-01T00:00:00Z'],
  ])('refuses the time %j', (text) => {
    expect([judgeIntent({ at: text }), judgeIntent({ expiresAt: text })]).toEqual(['fields', 'fields']);
  });

  it('shows no name that is no name of a key', () => {
    for (const name of ['shop\nx', '\u001b[2J', 'x'.repeat(33), ''])
      expect(verdictOf({ name })).toMatchObject({ fault: 'fields', message: 'A field was altered: key.' });
  });

  /** Each breaks one more rule than the next; the first that is broken is named. */
  it('checks in the documented order: fields, key, role, revoked, validity, signature, times', () => {
    const late: Given = { now: NOW + 8 * DAY_MS, expiresAt: iso(NOW + 7 * DAY_MS + 1) };
    const forged: Given = { ...late, altered: { payoutId: 'q' } };
    const invalid: Given = { ...forged, entry: { notAfter: iso(NOW - 1) } };
    const revoked: Given = { ...forged, entry: { ...invalid.entry, revoked: true } };
    const wrong: Given = { ...forged, entry: { ...revoked.entry, role: 'operator' } };
    const unknown: Given = { ...wrong, name: 'nobody' };
    const fields: Given = { ...unknown, altered: { payoutId: 'a\nb' } };
    const ahead: Given = { now: NOW - DAY_MS, expiresAt: iso(NOW - 2 * DAY_MS) };
    const all = [fields, unknown, wrong, revoked, invalid, forged, late, ahead];
    expect(all.map(judgeIntent)).toEqual([
      ...['fields', 'unknown_key', 'wrong_role', 'revoked_key', 'key_not_valid', 'bad_signature', 'expired'],
      'issued_in_future',
    ]);
    // What cannot come about in good faith is tampering.
    expect(all.map((given) => Reflect.get(verdictOf(given), 'isTampering') as unknown)).toEqual([
      ...[true, false, true, false, false, true, false, false],
    ]);
  });
});
