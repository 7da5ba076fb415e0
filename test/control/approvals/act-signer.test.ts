import { describe, expect, it } from '@jest/globals';
import { findSigningKey, signAct, type ActContent, type ActSigner } from '../../../src/control/approvals/act-signer.js';
import { parseAct, verifyAct } from '../../../src/control/approvals/act.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { parsePublicKey } from '../../../src/control/keys/keyring.js';
import { formatPublicKey } from '../../../src/control/keys/signing-key.js';
import { InvalidInputError, NotVerifiedError } from '../../../src/base/errors.js';
import { keyringOf, makePrivateKey, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';

const NOW = Date.parse('2030-01-01T00:00:00Z');
const PLATFORM = 4242;
const privateKey = makePrivateKey();
const ANN: KeyEntry = { name: 'ann', role: 'operator', person: 'Ann', public: formatPublicKey(privateKey) };
const signer: ActSigner = {
  name: 'ann',
  audience: TEST_AUDIENCE,
  sign: async (text) => Promise.resolve(signText(text, privateKey)),
};
const RESEND: ActContent = { act: 'resend', payoutId: 'p', intent: 'f'.repeat(64), attempt: 2, reason: 'ticket 812' };

const signed = async (content: ActContent = RESEND) => {
  const act = parseAct(await signAct(signer, PLATFORM, content, NOW));
  if (act === undefined) throw new Error('it cannot be read back');
  return act;
};

describe('a signed act', () => {
  it('counts for what it says, and for nothing else', async () => {
    const act = await signed();
    expect(verifyAct(PLATFORM, act, RESEND, keyringOf(ANN), NOW)).toMatchObject({ kind: 'verified', person: 'ann' });
    const others = [
      verifyAct(PLATFORM, act, { ...RESEND, attempt: 3 }, keyringOf(ANN), NOW),
      verifyAct(PLATFORM, act, { ...RESEND, payoutId: 'q' }, keyringOf(ANN), NOW),
      verifyAct(PLATFORM, act, { ...RESEND, intent: 'e'.repeat(64) }, keyringOf(ANN), NOW),
      verifyAct(PLATFORM + 1, act, RESEND, keyringOf(ANN), NOW),
      verifyAct(PLATFORM, { ...act, reason: 'another' }, RESEND, keyringOf(ANN), NOW),
    ];
    expect(others.map(({ kind }) => kind)).toEqual(others.map(() => 'refused'));
  });

  it('holds for seven days', async () => {
    const act = await signed();
    expect(act).toMatchObject({ at: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-08T00:00:00.000Z' });
    const end = Date.parse(act.expiresAt);
    expect(verifyAct(PLATFORM, act, RESEND, keyringOf(ANN), end - 1).kind).toBe('verified');
    expect(verifyAct(PLATFORM, act, RESEND, keyringOf(ANN), end).kind).toBe('refused');
  });

  it('is about the account where it names no payout', async () => {
    const resume: ActContent = { act: 'resume', payoutId: '', intent: '', attempt: undefined, reason: 'over' };
    expect(verifyAct(PLATFORM, await signed(resume), resume, keyringOf(ANN), NOW).kind).toBe('verified');
  });

  it('is not made of a reason that could be read as two lines', async () => {
    const signing = signed({ ...RESEND, reason: 'one\u2028attempt=3' });
    await expect(signing).rejects.toThrow(InvalidInputError);
    await expect(signing).rejects.toThrow(/^reason: must not contain control characters/);
  });
});

describe('the key with which someone is about to sign', () => {
  const find = (entry: Partial<KeyEntry>, name?: string) =>
    findSigningKey(keyringOf({ ...ANN, ...entry }), parsePublicKey(ANN.public), { role: 'operator', name, now: NOW });

  it('is found by itself', () => {
    expect(find({})).toMatchObject({ name: 'ann', person: 'ann' });
    expect(find({ name: 'ann-2' }, 'ann-2')).toMatchObject({ name: 'ann-2' });
    expect(find({ notBefore: '2030-01-01T00:00:00Z', notAfter: '2030-01-01T00:00:00Z' })).toMatchObject({
      name: 'ann',
    });
  });

  it.each<[string, Partial<KeyEntry>, RegExp]>([
    ['no such key', { public: formatPublicKey(makePrivateKey()) }, /has no such key.*role operator \(ann\)/],
    [
      'a key of another role',
      { role: 'approver' },
      /"ann" has the role approver.*role operator \(the keyring has none\)/,
    ],
    ['a revoked key', { revoked: true }, /"ann" is revoked/],
    ['a key that is not valid yet', { notBefore: '2030-01-01T00:00:01Z' }, /before 2030-01-01T00:00:01\.000Z/],
    ['a key that is not valid any more', { notAfter: '2029-12-31T23:59:59Z' }, /after 2029-12-31T23:59:59\.000Z/],
  ])('is refused where the keyring has %s', (_, entry, message) => {
    expect(() => find(entry)).toThrow(NotVerifiedError);
    expect(() => find(entry)).toThrow(message);
  });

  it('is refused under a name that is another key', () => {
    expect(() => find({}, 'bob')).toThrow(/names this key "ann", not "bob"/);
  });
});
