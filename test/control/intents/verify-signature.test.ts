import { describe, expect, it } from '@jest/globals';
import { formatAct, verifyAct, type Act } from '../../../src/control/approvals/act.js';
import { countApprovals } from '../../../src/control/approvals/approval.js';
import { formatIntent, hashIntent, type Intent } from '../../../src/control/intents/intent.js';
import { formatReceipt } from '../../../src/control/intents/receipt.js';
import { verifyIntent, type IntentVerdict } from '../../../src/control/intents/verify-intent.js';
import type { SignatureFault } from '../../../src/control/intents/verify-signature.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import type { KeyRole } from '../../../src/control/keys/keyring.js';
import type { Approval } from '../../../src/ledger/control-record.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey, type KeyEntry } from '../support/keys.js';
import { DAY_MS, iso, MINUTE_MS, NOW, PLATFORM, signApproval } from '../support/signed.js';

/** When a signature counts: the rules that intents, acts and approvals share, and those of intents. */

interface Given {
  readonly at?: string;
  readonly expiresAt?: string;
  /** Undefined is none. */
  readonly audience?: string | undefined;
  readonly entry?: Partial<KeyEntry>;
  readonly now?: number;
  /** The key that the signature names. */
  readonly name?: string;
  readonly signature?: string;
  /** What is altered after it was signed. */
  readonly altered?: 'a value' | 'a line break' | { readonly audience: string | undefined };
  readonly platformId?: number;
}

type Signed = Pick<Intent, 'audience' | 'expiresAt'> & { readonly at: string };

const HASH = 'ab'.repeat(32);
const signedAs = ({ at = iso(NOW), expiresAt = iso(NOW + DAY_MS), ...given }: Given): Signed => ({
  ...{ at, expiresAt, audience: 'audience' in given ? given.audience : TEST_AUDIENCE },
});
const changeOf = ({ altered }: Given, value: object, lineBreak: object): object =>
  altered === 'a value' ? value : altered === 'a line break' ? lineBreak : (altered ?? {});
const keysOf = (role: KeyRole, { entry }: Given) =>
  keyringOf(keyEntry(testKey(1), { role, ...entry }), keyEntry(testKey(2), { name: 'other', role, person: 'Other' }));

function intentOf(given: Given): Intent {
  const { at: issuedAt, ...signed } = signedAs(given);
  return {
    ...{ payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'wallet' },
    platformId: PLATFORM,
    issuedAt,
    ...signed,
  };
}

function judgeIntent(given: Given, change: Partial<Intent> = {}): IntentVerdict {
  const { name = 'shop', platformId = PLATFORM, now = NOW + 1 } = given;
  const intent = intentOf(given);
  const signature = given.signature ?? signText(formatIntent(intent), testKey(1));
  const altered = changeOf(given, { amount: '99' }, { reference: 'a\nb' });
  return verifyIntent(
    { ...intent, platformId, ...altered, ...change },
    { key: name, signature },
    keysOf('producer', given),
    now,
  );
}
const faultOf = (given: Given, change: Partial<Intent> = {}): string => {
  const verdict = judgeIntent(given, change);
  return verdict.kind === 'verified' ? 'counts' : verdict.fault;
};

function judgeAct(given: Given): string {
  const { name = 'shop', platformId = PLATFORM, now = NOW + 1 } = given;
  const wanted = { act: 'resend', payoutId: 'p', intent: HASH, attempt: 1 } as const;
  const act: Act = { ...wanted, reason: 'ticket 813', by: 'shop', ...signedAs(given) };
  const signature = given.signature ?? signText(formatAct(PLATFORM, act), testKey(1));
  const altered = { ...act, by: name, signature, ...changeOf(given, { reason: 'other' }, { reason: 'a\nb' }) };
  const verdict = verifyAct(platformId, altered, wanted, keysOf('operator', given), now);
  return verdict.kind === 'verified' ? 'counts' : verdict.message;
}

function judgeApproval(given: Given): string {
  const { name = 'shop', platformId = PLATFORM, now = NOW + 1 } = given;
  const about = { payoutId: 'p', intent: HASH };
  const approval: Approval = { ...about, decision: 'approve', by: 'shop', ...signedAs(given) };
  const { signature } = { ...signApproval(1, approval), ...(given.signature !== undefined && given) };
  const altered = changeOf(given, { decision: 'reject' }, { payoutId: 'p\nintent=' });
  const rule = { keyring: keysOf('approver', given), lifetimeMs: 7 * DAY_MS, now };
  const payout = { ...about, platformId, signedBy: 'x', requestedBy: undefined };
  const { refused, counted } = countApprovals(payout, [{ ...approval, by: name, signature, ...altered }], rule);
  return counted.length > 0 ? 'counts' : (refused[0]?.message ?? '');
}

const MESSAGES: Readonly<Record<SignatureFault['fault'] | 'fields', RegExp>> = {
  fields: /^(reason|payoutId): must not contain control characters/,
  wrong_audience: /^it is signed for "staging", and this is "test"/,
  no_audience: /^it names no audience/,
  unknown_key: /^the key "\w+" is not in the worker's keyring$/,
  wrong_role: /^the key "shop" has the role \w+, not (operator|approver)$/,
  revoked_key: /"shop" is revoked$/,
  key_not_valid: /^it was issued outside the time of the key "shop"$/,
  bad_signature: /^the signature of key "\w+" is not over it$/,
  issued_in_future: /^it was issued at .*, which is in the future$/,
  expired: /^it expired at /,
  lifetime: /^it is signed for too long$/,
};

describe.each([
  ['an intent', 'producer', faultOf],
  ['an act', 'operator', judgeAct],
  ['an approval', 'approver', judgeApproval],
] as const)('the signature of %s', (_, role, judge) => {
  const others = (['producer', 'operator', 'approver', 'worker'] as const).filter((other) => other !== role);

  it.each<[string, Given, SignatureFault['fault'] | 'fields' | 'counts']>([
    ['nothing wrong', {}, 'counts'],
    ['an unknown key', { name: 'nobody' }, 'unknown_key'],
    ['a name in other letters', { name: 'Shop' }, 'unknown_key'],
    ['a name of every object', { name: 'constructor' }, 'unknown_key'],
    ['another key of the keyring', { name: 'other' }, 'bad_signature'],
    ...others.map((other): [string, Given, 'wrong_role'] => [
      `a key with the role ${other}`,
      { entry: { role: other } },
      'wrong_role',
    ]),
    ['a revoked key', { entry: { revoked: true } }, 'revoked_key'],
    ['no signature', { signature: '' }, 'bad_signature'],
    ['another account', { platformId: PLATFORM + 1 }, 'bad_signature'],
    ['a value altered', { altered: 'a value' }, 'bad_signature'],
    ['a line break', { altered: 'a line break' }, 'fields'],
    ['another environment', { audience: 'staging' }, 'wrong_audience'],
    ['another, altered into this one', { audience: 'staging', altered: { audience: TEST_AUDIENCE } }, 'bad_signature'],
    ['no environment', { audience: undefined }, 'no_audience'],
    ['none, altered into this one', { audience: undefined, altered: { audience: TEST_AUDIENCE } }, 'bad_signature'],
    ['an environment that was taken out', { altered: { audience: undefined } }, 'no_audience'],
    ['the first ms of the key', { entry: { notBefore: iso(NOW) } }, 'counts'],
    ['a ms before the key', { entry: { notBefore: iso(NOW + 1) } }, 'key_not_valid'],
    ['the last ms of the key', { entry: { notAfter: iso(NOW) } }, 'counts'],
    ['a ms after the key', { entry: { notAfter: iso(NOW - 1) } }, 'key_not_valid'],
    ['a key that ended since', { entry: { notAfter: iso(NOW) }, now: NOW + DAY_MS - 1 }, 'counts'],
    ['5 minutes ahead', { now: NOW - 5 * MINUTE_MS }, 'counts'],
    ['5 minutes and 1 ms ahead', { now: NOW - 5 * MINUTE_MS - 1 }, 'issued_in_future'],
    ['a clock that is none', { now: NaN }, 'issued_in_future'],
    ['the last ms', { now: NOW + DAY_MS - 1 }, 'counts'],
    ['the time of its end', { now: NOW + DAY_MS }, 'expired'],
    ['an end before the beginning', { expiresAt: iso(NOW - 1) }, 'expired'],
    ['a lifetime of 7 days', { expiresAt: iso(NOW + 7 * DAY_MS) }, 'counts'],
    ['a lifetime of 7 days and 1 ms', { expiresAt: iso(NOW + 7 * DAY_MS + 1) }, 'lifetime'],
    ['times without milliseconds', { at: '2026-11-21T20:00:00Z' }, 'counts'],
  ])('with %s', (_name, given, fault) => {
    const said = judge(given);
    if (role === 'producer' || fault === 'counts') expect(said).toBe(fault);
    else expect(said).toMatch(MESSAGES[fault]);
  });

  it('is over no text of another type', () => {
    const signed = signedAs({});
    const about = { payoutId: 'p', intent: HASH, attempt: 1, ...signed };
    const texts = {
      producer: formatIntent(intentOf({})),
      operator: formatAct(PLATFORM, { ...about, act: 'resend', reason: 'ticket 813', by: 'shop' }),
      worker: formatReceipt(PLATFORM, { ...about, state: 'completed', txhash: '' }),
    };
    for (const [signer, text] of Object.entries({ ...texts, none: '' })) {
      if (signer === role) continue;
      const said = judge({ signature: signText(text, testKey(1)) });
      expect(said).toMatch(role === 'producer' ? /^bad_signature$/ : MESSAGES.bad_signature);
    }
  });
});

describe('verifyIntent', () => {
  it('names the hash and the signer of what it verified', () => {
    const verified = { kind: 'verified', intentHash: hashIntent(intentOf({})), signer: { name: 'shop' } };
    expect(judgeIntent({})).toMatchObject(verified);
  });

  it('refuses what has no signature, which is no tampering', () => {
    const verdict = verifyIntent(intentOf({}), undefined, keyringOf(), NOW);
    expect(verdict).toMatchObject({ fault: 'unsigned', isTampering: false });
  });

  it.each([
    ...['', 'now', '2026-11-21', '2026-11-21T20:00:00', '2026-11-21T20:00:00+00:00', '2026-11-21 20:00:00Z'],
    ...[' 2026-11-21T20:00:00Z', 'Sat, 21 Nov 2026 20:00:00 GMT', '2026-13-01T00:00:00Z', '1795291200000'],
  ])('refuses the time %j', (text) => {
    expect([faultOf({ at: text }), faultOf({ expiresAt: text })]).toEqual(['fields', 'fields']);
  });

  it('refuses an empty symbol, and shows no name that is no name of a key', () => {
    expect(faultOf({}, { symbol: '' })).toBe('fields');
    for (const name of ['shop\nx', '\u001b[2J', 'x'.repeat(33), '']) {
      expect(judgeIntent({ name })).toMatchObject({ fault: 'fields', message: 'A field was altered: key.' });
    }
  });

  /** Each breaks one more rule than the next; the first that is broken is named. */
  it('checks in the documented order: fields, key, role, revoked, validity, signature, times', () => {
    const late: Given = { now: NOW + 8 * DAY_MS, expiresAt: iso(NOW + 7 * DAY_MS + 1) };
    const forged: Given = { ...late, altered: 'a value' };
    const invalid: Given = { ...forged, entry: { notAfter: iso(NOW - 1) } };
    const revoked: Given = { ...forged, entry: { ...invalid.entry, revoked: true } };
    const wrong: Given = { ...forged, entry: { ...revoked.entry, role: 'operator' } };
    const unknown: Given = { ...wrong, name: 'nobody' };
    const fields: Given = { ...unknown, altered: 'a line break' };
    const ahead: Given = { now: NOW - DAY_MS, expiresAt: iso(NOW - 2 * DAY_MS) };
    expect([fields, unknown, wrong, revoked, invalid, forged, late, ahead].map((given) => faultOf(given))).toEqual([
      ...['fields', 'unknown_key', 'wrong_role', 'revoked_key', 'key_not_valid', 'bad_signature', 'expired'],
      'issued_in_future',
    ]);
  });

  it('calls tampering what cannot come about in good faith', () => {
    const isTampering = (given: Given): unknown => (judgeIntent(given) as { isTampering?: boolean }).isTampering;
    const altered: Given[] = [{ altered: 'a value' }, { altered: 'a line break' }, { at: 'now' }, { name: 'a\nb' }];
    expect([...altered, { entry: { role: 'worker' as const } }].map(isTampering)).toEqual(Array(5).fill(true));
    expect([{ name: 'nobody' }, { now: NOW + DAY_MS }].map(isTampering)).toEqual([false, false]);
  });
});
