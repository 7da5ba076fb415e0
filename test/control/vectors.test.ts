import { describe, expect, it } from '@jest/globals';
import { formatAct, type Act } from '../../src/control/approvals/act.js';
import { formatApproval } from '../../src/control/approvals/approval.js';
import { formatIntent, type Intent } from '../../src/control/intents/intent.js';
import { formatReceipt, type Receipt } from '../../src/control/intents/receipt.js';
import { hashText } from '../../src/control/intents/statement.js';
import { publicKeyOf, signText, verifyText } from '../../src/control/keys/ed25519.js';
import { isSignedBy, type KeyringKey } from '../../src/control/keys/keyring.js';
import type { Approval } from '../../src/ledger/control-record.js';
import { keyEntry, keyringOf, privateKeyOf } from './support/keys.js';
import { readVectors } from './support/vectors.js';

const { cases, python } = readVectors();
const privateKey = privateKeyOf(cases.seed);
const publicKey = publicKeyOf(Buffer.from(python.publicKey, 'hex'));
const FORMATS = {
  intent: (_: number, given: unknown) => formatIntent(given as Intent),
  act: (platformId: number, given: unknown) => formatAct(platformId, given as Act),
  approval: (platformId: number, given: unknown) => formatApproval(platformId, given as Approval),
  receipt: (platformId: number, given: unknown) => formatReceipt(platformId, given as Receipt),
};
const ours = cases.statements.map(({ name, kind, audience, platformId, fields }) => {
  const text = FORMATS[kind](platformId, { audience, platformId, ...fields });
  return { name, text, hash: hashText(text), signature: signText(text, privateKey) };
});
const [sshKey, skKey] = [python.sshPublic, python.skPublic].map(
  (text) => keyringOf(keyEntry(privateKey, { public: text })).keys[0],
) as [KeyringKey, KeyringKey];

describe.each(ours.map((statement, index) => ({ ...statement, index })))('$name', ({ index, text, signature }) => {
  const other = ours[(index + 1) % ours.length]?.text ?? '';

  it('has the same bytes, hash and signature in Python', () => {
    expect(python.statements[index]).toMatchObject(ours[index] ?? {});
    expect([text, other].map((each) => verifyText(each, signature, publicKey))).toEqual([true, false]);
  });

  it('is signed by ssh-keygen and by a hardware key, over this text and with this key only', () => {
    const { ssh = '', sk = '' } = python.statements[index] ?? {};
    expect([isSignedBy(sshKey, text, ssh), isSignedBy(skKey, text, sk)]).toEqual([true, true]);
    expect([isSignedBy(sshKey, other, ssh), isSignedBy(skKey, other, sk)]).toEqual([false, false]);
    expect([isSignedBy(skKey, text, ssh), isSignedBy(sshKey, text, sk)]).toEqual([false, false]);
  });
});

it('a key on hardware does not count untouched, nor by a plain signature', () => {
  const { text = '', signature = '' } = ours[0] ?? {};
  expect([python.skUntouched, signature].map((given) => isSignedBy(skKey, text, given))).toEqual([false, false]);
});
