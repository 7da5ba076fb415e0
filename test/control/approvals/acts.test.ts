import { describe, expect, it } from '@jest/globals';
import { findSigningKey, signAct, type ActContent } from '../../../src/control/approvals/act-signer.js';
import { hashAct, parseAct, serializeAct, verifyAct, type Act } from '../../../src/control/approvals/act.js';
import { InvalidInputError, NotVerifiedError } from '../../../src/base/errors.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { parsePublicKey } from '../../../src/control/keys/keyring.js';
import { keyringOf, testKey, TEST_AUDIENCE, type KeyEntry } from '../support/keys.js';
import { DAY_MS, entryOf, iso, NOW, PLATFORM } from '../support/signed.js';

const OLGA = entryOf(1, 'olga', 'operator');
const WANTED = { act: 'resend', payoutId: 'p', intent: 'ab'.repeat(32), attempt: 1 } as const;
const CONTENT: ActContent = { ...WANTED, reason: 'ticket 813' };

const signed = async (content: ActContent = CONTENT) => {
  const sign = async (text: string): Promise<string> => Promise.resolve(signText(text, testKey(1)));
  const act = parseAct(await signAct({ name: 'olga', audience: TEST_AUDIENCE, sign }, PLATFORM, content, NOW));
  if (act === undefined) throw new Error('it cannot be read back');
  return act;
};

describe('a signed act', () => {
  it('holds for seven days, and counts for what it says, with person and hash', async () => {
    const act = await signed();
    const { signature, ...content } = act;
    expect(content).toEqual({
      ...CONTENT,
      audience: TEST_AUDIENCE,
      by: 'olga',
      at: iso(NOW),
      expiresAt: iso(NOW + 7 * DAY_MS),
    });
    const actHash = hashAct(PLATFORM, content);
    expect(verifyAct(PLATFORM, act, WANTED, keyringOf(OLGA), NOW)).toEqual({
      kind: 'verified',
      person: 'olga',
      actHash,
    });
    expect(signature).toHaveLength(86);
  });

  it('is about the account where it names no payout', async () => {
    const resume: ActContent = { act: 'resume', payoutId: '', intent: '', attempt: undefined, reason: 'over' };
    expect(verifyAct(PLATFORM, await signed(resume), resume, keyringOf(OLGA), NOW).kind).toBe('verified');
  });

  it.each<[string, Partial<Act>, Partial<Act>, string]>([
    ['act', {}, { act: 'resume' }, 'another act (resend)'],
    ['payout', {}, { payoutId: 'b' }, 'another payoutId (p)'],
    ['intent', {}, { intent: '' }, `another intent (${WANTED.intent})`],
    ['attempt', {}, { attempt: 2 }, 'another attempt (1)'],
    ['attempt where none is wanted', {}, { attempt: undefined }, 'another attempt (1)'],
    ['attempt where one is wanted, which is none', { attempt: undefined }, {}, 'another attempt (none)'],
  ])('does not count for another %s', async (_, content, wanted, message) => {
    const act = await signed({ ...CONTENT, ...content });
    const verdict = verifyAct(PLATFORM, act, { ...WANTED, ...wanted }, keyringOf(OLGA), NOW);
    expect(verdict).toEqual({ kind: 'refused', message: `it names ${message}` });
  });

  it.each([
    [{ at: 'now' }, /outside the time of the key/],
    [{ at: '2026-11-21T20:00:00' }, /outside the time of the key/],
    [{ expiresAt: 'never' }, /^the signature of key "olga" is not over it/],
    [{ payoutId: 'a\nb' }, /^payoutId: must not contain/],
  ])('does not count altered to %j', async (change, message) => {
    const act = { ...(await signed()), ...change };
    expect(verifyAct(PLATFORM, act, WANTED, keyringOf(OLGA), NOW)).toMatchObject({
      message: expect.stringMatching(message),
    });
  });

  it('is not made of a reason that could be read as two lines', async () => {
    const signing = signed({ ...CONTENT, reason: 'one\u2028attempt=3' });
    await expect(signing).rejects.toThrow(InvalidInputError);
    await expect(signing).rejects.toThrow(/^reason: must not contain control characters/);
  });

  it('is read as it was stored', () => {
    for (const attempt of [1, undefined]) {
      const stored = {
        ...CONTENT,
        audience: TEST_AUDIENCE,
        attempt,
        by: 'olga',
        at: iso(NOW),
        expiresAt: iso(NOW),
        signature: 's',
      };
      expect(parseAct(serializeAct(stored))).toEqual(stored);
    }
  });

  it.each([
    ...['{', '[]', 'null', { act: 'pay' }, { more: 1 }, { by: undefined }, { attempt: 0 }, { attempt: 1.5 }],
    ...[
      { attempt: '1' },
      { at: '2026-11-21T20:00:00' },
      { signature: 'x'.repeat(4097) },
      { payoutId: 'x'.repeat(301) },
    ],
  ])('is none of %j', async (change) => {
    const text = typeof change === 'string' ? change : JSON.stringify({ ...(await signed()), ...change });
    expect(parseAct(text)).toBeUndefined();
  });
});

describe('the key with which someone is about to sign', () => {
  const find = (entry: Partial<KeyEntry>, name?: string) =>
    findSigningKey(keyringOf({ ...OLGA, ...entry }), parsePublicKey(OLGA.public), { role: 'operator', name, now: NOW });

  it('is found by itself', () => {
    expect(find({})).toMatchObject({ name: 'olga', person: 'olga' });
    expect(find({ name: 'olga-2' }, 'olga-2')).toMatchObject({ name: 'olga-2' });
    expect(find({ notBefore: iso(NOW), notAfter: iso(NOW) })).toMatchObject({ name: 'olga' });
  });

  it.each<[string, Partial<KeyEntry>, RegExp]>([
    ['no such key', { public: entryOf(2, 'x', 'operator').public }, /has no such key.*role operator \(olga\)/],
    ['another role', { role: 'approver' }, /"olga" has the role approver.*role operator \(the keyring has none\)/],
    ['a revocation', { revoked: true }, /"olga" is revoked/],
    ['a later time', { notBefore: iso(NOW + 1000) }, /before 2026-11-21T20:00:01\.000Z/],
    ['an earlier time', { notAfter: iso(NOW - 1000) }, /after 2026-11-21T19:59:59\.000Z/],
  ])('is refused where the keyring has %s', (_, entry, message) => {
    expect(() => find(entry)).toThrow(NotVerifiedError);
    expect(() => find(entry)).toThrow(message);
  });

  it('is refused under a name that is another key', () => {
    expect(() => find({}, 'bob')).toThrow(/names this key "olga", not "bob"/);
  });
});
