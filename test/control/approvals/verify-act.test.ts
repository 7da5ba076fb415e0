import { describe, expect, it } from '@jest/globals';
import {
  type Act,
  formatAct,
  hashAct,
  parseAct,
  serializeAct,
  type SignedAct,
  verifyAct,
  type WantedAct,
} from '../../../src/control/approvals/act.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { formatIntent } from '../../../src/control/intents/intent.js';
import { keyEntry, keyringOf, testKey, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const iso = (ms: number): string => new Date(ms).toISOString();
const HASH = 'ab'.repeat(32);

const ACT: Act = {
  audience: TEST_AUDIENCE,
  act: 'resend',
  payoutId: 'invoice-77',
  intent: HASH,
  attempt: 1,
  reason: 'ticket 813',
  by: 'olga',
  at: iso(NOW),
  expiresAt: iso(NOW + DAY),
};

interface Given {
  readonly act?: Partial<Act>;
  readonly altered?: Partial<SignedAct>;
  readonly wanted?: Partial<WantedAct>;
  readonly entry?: Partial<KeyEntry>;
  readonly platformId?: number;
  readonly now?: number;
}

function judge({ act, altered, wanted, entry, platformId = 4242, now = NOW + 1 }: Given): string {
  const signed = { ...ACT, ...act };
  const given = { ...signed, signature: signText(formatAct(4242, signed), testKey(1)), ...altered };
  const operator = keyEntry(testKey(1), { name: 'olga', role: 'operator', person: 'Olga', ...entry });
  const other = keyEntry(testKey(2), { name: 'otto', role: 'operator', person: 'Otto' });
  const { payoutId, intent, attempt } = ACT;
  const about = { act: ACT.act, payoutId, intent, attempt, ...wanted };
  const verdict = verifyAct(platformId, given, about, keyringOf(operator, other), now);
  return verdict.kind === 'verified' ? `verified ${verdict.person}` : verdict.message;
}

describe('verifyAct', () => {
  it.each([
    ['another environment', 'staging', 'it is signed for "staging", and this is "test": '],
    ['no environment', undefined, 'it names no audience'],
  ])('of %s', (_, audience, message) => {
    expect(judge({ act: { audience } })).toContain(message);
    expect(judge({ act: { audience }, altered: { audience: TEST_AUDIENCE } })).toContain('is not over it');
  });

  it('names person and hash', () => {
    const act = { ...ACT, signature: signText(formatAct(4242, ACT), testKey(1)) };
    const keyring = keyringOf(keyEntry(testKey(1), { name: 'olga', role: 'operator', person: 'Olga' }));
    expect(verifyAct(4242, act, ACT, keyring, NOW)).toEqual({
      ...{ kind: 'verified', person: 'olga', actHash: hashAct(4242, ACT) },
    });
  });

  it.each<[string, Given, string | RegExp]>([
    ['nothing wrong', {}, 'verified olga'],
    ['another act is wanted', { wanted: { act: 'resume' } }, 'it names another act (resend)'],
    ['another payout', { wanted: { payoutId: 'b' } }, 'it names another payoutId (invoice-77)'],
    ['another intent', { wanted: { intent: '' } }, /^it names another intent/],
    ['another attempt', { wanted: { attempt: 2 } }, 'it names another attempt (1)'],
    ['an attempt where none is wanted', { wanted: { attempt: undefined } }, 'it names another attempt (1)'],
    ['no attempt where one is wanted', { act: { attempt: undefined } }, 'it names another attempt (none)'],
    ['another account', { platformId: 4243 }, /signature of key "olga" is not over it/],
    ['the reason altered', { altered: { reason: 'other' } }, /is not over it/],
    ['the name of another operator', { altered: { by: 'otto' } }, /key "otto" is not over it/],
    ['an unknown name', { altered: { by: 'nobody' } }, /"nobody" is not in the worker's keyring/],
    ['a line break', { altered: { reason: 'a\nb' } }, /^reason: must not contain control characters/],
    ['a line break in what a message would show', { altered: { payoutId: 'a\nb' } }, /^payoutId: must not contain/],
    ['a later end', { altered: { expiresAt: iso(NOW + 2 * DAY) } }, /is not over it/],
    ['no signature', { altered: { signature: '' } }, /is not over it/],
    ['a producer', { entry: { role: 'producer' } }, /role producer, not operator/],
    ['an approver', { entry: { role: 'approver' } }, /role approver, not operator/],
    ['a worker', { entry: { role: 'worker' } }, /role worker, not operator/],
    ['a revoked key', { entry: { revoked: true } }, /is revoked/],
    ['the first ms of the key', { entry: { notBefore: iso(NOW) } }, 'verified olga'],
    ['a ms before the key', { entry: { notBefore: iso(NOW + 1) } }, /outside the time of the key/],
    ['the last ms of the key', { entry: { notAfter: iso(NOW) } }, 'verified olga'],
    ['a ms after the key', { entry: { notAfter: iso(NOW - 1) } }, /outside the time of the key/],
    ['5 minutes ahead', { now: NOW - 5 * MINUTE }, 'verified olga'],
    ['5 minutes and 1 ms ahead', { now: NOW - 5 * MINUTE - 1 }, /which is in the future/],
    ['the last ms', { now: NOW + DAY - 1 }, 'verified olga'],
    ['the time of its end', { now: NOW + DAY }, /^it expired at/],
    ['a lifetime of 7 days', { act: { expiresAt: iso(NOW + 7 * DAY) } }, 'verified olga'],
    ['a lifetime of 7 days and 1 ms', { act: { expiresAt: iso(NOW + 7 * DAY + 1) } }, 'it is signed for too long'],
    ['a time that is none', { act: { at: 'now' } }, /outside the time of the key/],
    ['a local time', { act: { at: '2026-11-21T20:00:00' } }, /outside the time of the key/],
    ['an end that is no time', { act: { expiresAt: 'never' } }, /^it expired at never/],
  ])('%s', (_, given, message) => {
    if (typeof message === 'string') expect(judge(given)).toBe(message);
    else expect(judge(given)).toMatch(message);
  });

  it('a signature over an intent is none over an act', () => {
    const times = { issuedAt: ACT.at, expiresAt: ACT.expiresAt };
    const text = formatIntent({ platformId: 4242, payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'w', ...times });
    expect(judge({ altered: { signature: signText(text, testKey(1)) } })).toMatch(/is not over it/);
  });
});

describe('parseAct', () => {
  const stored = { ...ACT, signature: 's' };

  it('reads what serializeAct wrote', () => {
    expect(parseAct(serializeAct(stored))).toEqual(stored);
    const withoutAttempt = { ...stored, attempt: undefined };
    expect(parseAct(serializeAct(withoutAttempt))).toEqual(withoutAttempt);
  });

  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['null', 'null'],
    ['another act', JSON.stringify({ ...stored, act: 'pay' })],
    ['a field more', JSON.stringify({ ...stored, more: 1 })],
    ['a field less', JSON.stringify({ ...stored, by: undefined })],
    ['attempt 0', JSON.stringify({ ...stored, attempt: 0 })],
    ['a fraction of an attempt', JSON.stringify({ ...stored, attempt: 1.5 })],
    ['an attempt as text', JSON.stringify({ ...stored, attempt: '1' })],
    ['a local time', JSON.stringify({ ...stored, at: '2026-11-21T20:00:00' })],
    ['a long signature', JSON.stringify({ ...stored, signature: 'x'.repeat(4097) })],
    ['a long value', JSON.stringify({ ...stored, payoutId: 'x'.repeat(301) })],
  ])('reads none of %s', (_, text) => {
    expect(parseAct(text)).toBeUndefined();
  });
});
