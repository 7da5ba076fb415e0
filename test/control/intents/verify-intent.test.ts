import { describe, expect, it } from '@jest/globals';
import { formatAct } from '../../../src/control/approvals/act.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { formatIntent, hashIntent, type Intent } from '../../../src/control/intents/intent.js';
import { formatReceipt } from '../../../src/control/intents/receipt.js';
import { verifyIntent, type IntentVerdict } from '../../../src/control/intents/verify-intent.js';
import { keyEntry, keyringOf, testKey, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const iso = (ms: number): string => new Date(ms).toISOString();

const INTENT: Intent = {
  audience: TEST_AUDIENCE,
  platformId: 4242,
  payoutId: 'invoice-77',
  paymentId: 6,
  amount: '12.5',
  addressTo: 'wallet',
  issuedAt: iso(NOW),
  expiresAt: iso(NOW + DAY),
};

interface Given {
  readonly intent?: Partial<Intent>;
  /** The key that the signature names. */
  readonly name?: string;
  readonly signature?: string;
  readonly entry?: Partial<KeyEntry>;
  readonly now?: number;
  /** What is altered after it was signed. */
  readonly altered?: Partial<Intent>;
}

function judge({ intent, name = 'shop', signature, entry, now = NOW + 1, altered }: Given): IntentVerdict {
  const signed = { ...INTENT, ...intent };
  const keyring = keyringOf(keyEntry(testKey(1), entry), keyEntry(testKey(2), { name: 'other', person: 'Other' }));
  const text = signature ?? signText(formatIntent(signed), testKey(1));
  return verifyIntent({ ...signed, ...altered }, { key: name, signature: text }, keyring, now);
}

const faultOf = (given: Given): string => {
  const verdict = judge(given);
  return verdict.kind === 'verified' ? 'verified' : verdict.fault;
};

describe('verifyIntent', () => {
  it('names the hash and the signer of what it verified', () => {
    expect(judge({})).toMatchObject({ kind: 'verified', intentHash: hashIntent(INTENT), signer: { name: 'shop' } });
  });

  it.each<[string, Given, string]>([
    ['nothing wrong', {}, 'verified'],
    ['an unknown key', { name: 'nobody' }, 'unknown_key'],
    ['a name in other letters', { name: 'Shop' }, 'unknown_key'],
    ['a name of every object', { name: 'constructor' }, 'unknown_key'],
    ['another key of the keyring', { name: 'other' }, 'bad_signature'],
    ['an operator', { entry: { role: 'operator' } }, 'wrong_role'],
    ['an approver', { entry: { role: 'approver' } }, 'wrong_role'],
    ['a worker', { entry: { role: 'worker' } }, 'wrong_role'],
    ['a revoked key', { entry: { revoked: true } }, 'revoked_key'],
    ['another platform', { altered: { platformId: 4243 } }, 'bad_signature'],
    ['another environment', { intent: { audience: 'staging' } }, 'wrong_audience'],
    [
      'another environment, altered into this one',
      { intent: { audience: 'staging' }, altered: { audience: TEST_AUDIENCE } },
      'bad_signature',
    ],
    ['no environment', { intent: { audience: undefined } }, 'no_audience'],
    ['an environment that was taken out', { altered: { audience: undefined } }, 'no_audience'],
    ['a control character', { altered: { reference: 'a\nb' } }, 'fields'],
    ['an empty symbol', { altered: { symbol: '' } }, 'fields'],
    ['the first ms of the key', { entry: { notBefore: iso(NOW) } }, 'verified'],
    ['a ms before the key', { entry: { notBefore: iso(NOW + 1) } }, 'key_not_valid'],
    ['the last ms of the key', { entry: { notAfter: iso(NOW) } }, 'verified'],
    ['a ms after the key', { entry: { notAfter: iso(NOW - 1) } }, 'key_not_valid'],
    ['a key that ended since', { entry: { notAfter: iso(NOW) }, now: NOW + DAY - 1 }, 'verified'],
    ['5 minutes ahead', { now: NOW - 5 * MINUTE }, 'verified'],
    ['5 minutes and 1 ms ahead', { now: NOW - 5 * MINUTE - 1 }, 'issued_in_future'],
    ['the last ms', { now: NOW + DAY - 1 }, 'verified'],
    ['the time of its end', { now: NOW + DAY }, 'expired'],
    ['a lifetime of 7 days', { intent: { expiresAt: iso(NOW + 7 * DAY) } }, 'verified'],
    ['a lifetime of 7 days and 1 ms', { intent: { expiresAt: iso(NOW + 7 * DAY + 1) } }, 'lifetime'],
    ['an end before the beginning', { intent: { expiresAt: iso(NOW - 1) } }, 'expired'],
    ['a clock that is none', { now: NaN }, 'issued_in_future'],
    ...[
      ...['', 'now', '2026-11-21', '2026-11-21T20:00:00', '2026-11-21T20:00:00+00:00', '2026-11-21 20:00:00Z'],
      ...[' 2026-11-21T20:00:00Z', 'Sat, 21 Nov 2026 20:00:00 GMT', '2026-13-01T00:00:00Z', '1795291200000'],
    ].flatMap((text): [string, Given, string][] => [
      [`issued at "${text}"`, { intent: { issuedAt: text } }, 'fields'],
      [`ending at "${text}"`, { intent: { expiresAt: text } }, 'fields'],
    ]),
    ['times without milliseconds', { intent: { issuedAt: '2026-11-21T20:00:00Z' } }, 'verified'],
  ])('%s', (_, given, fault) => {
    expect(faultOf(given)).toBe(fault);
  });

  it('without a signature', () => {
    expect(verifyIntent(INTENT, undefined, keyringOf(), NOW)).toMatchObject({ fault: 'unsigned', isTampering: false });
  });

  it('a signature over a text of another type', () => {
    const at = { audience: TEST_AUDIENCE, at: INTENT.issuedAt, expiresAt: INTENT.expiresAt };
    const act = {
      act: 'resend',
      payoutId: 'invoice-77',
      intent: '',
      attempt: 1,
      reason: '',
      by: 'shop',
      ...at,
    } as const;
    const receipt = {
      audience: TEST_AUDIENCE,
      payoutId: 'invoice-77',
      intent: '',
      state: 'completed',
      attempt: 1,
      txhash: '',
      at: at.at,
    };
    for (const text of [formatAct(4242, act), formatReceipt(4242, receipt), `${formatIntent(INTENT)}\n`, '']) {
      expect(faultOf({ signature: signText(text, testKey(1)) })).toBe('bad_signature');
    }
  });

  /** Each breaks one more rule than the next; the first that is broken is named. */
  it('checks in the documented order: fields, key, role, revoked, validity, signature, times', () => {
    const late = { now: NOW + 8 * DAY, intent: { expiresAt: iso(NOW + 7 * DAY + 1) } };
    const forged = { ...late, altered: { amount: '99' } };
    const invalid = { ...forged, entry: { notAfter: iso(NOW - 1) } };
    const revoked = { ...forged, entry: { ...invalid.entry, revoked: true } };
    const wrong = { ...forged, entry: { ...revoked.entry, role: 'operator' as const } };
    const unknown = { ...wrong, name: 'nobody' };
    const fields = { ...unknown, altered: { amount: '9\n9' } };
    const ahead = { now: NOW - DAY, intent: { expiresAt: iso(NOW - 2 * DAY) } };
    expect([fields, unknown, wrong, revoked, invalid, forged, late, ahead].map((given) => faultOf(given))).toEqual([
      ...['fields', 'unknown_key', 'wrong_role', 'revoked_key', 'key_not_valid', 'bad_signature', 'expired'],
      'issued_in_future',
    ]);
  });

  it('calls tampering what cannot come about in good faith', () => {
    const isTampering = (given: Given): unknown => (judge(given) as { isTampering?: boolean }).isTampering;
    expect(isTampering({ altered: { amount: '99' } })).toBe(true);
    expect(isTampering({ altered: { symbol: 'a\nb' } })).toBe(true);
    expect(isTampering({ altered: { issuedAt: 'now' } })).toBe(true);
    expect(isTampering({ name: 'a\nb' })).toBe(true);
    expect(isTampering({ entry: { role: 'worker' } })).toBe(true);
    expect(isTampering({ name: 'nobody' })).toBe(false);
    expect(isTampering({ now: NOW + DAY })).toBe(false);
  });

  it('shows no name that is no name of a key', () => {
    for (const name of ['shop\nx', '\u001b[2J', 'x'.repeat(33), '']) {
      expect(judge({ name })).toMatchObject({ fault: 'fields', message: 'A field was altered: key.' });
    }
  });
});
