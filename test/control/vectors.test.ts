import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { formatAct, type Act } from '../../src/control/approvals/act.js';
import { formatApproval } from '../../src/control/approvals/approval.js';
import { formatIntent, type Intent } from '../../src/control/intents/intent.js';
import { formatReceipt, type Receipt } from '../../src/control/intents/receipt.js';
import { hashText } from '../../src/control/intents/statement.js';
import { bytesOf, publicKeyOf, signText, verifyText } from '../../src/control/keys/ed25519.js';
import { isSignedBy, type KeyringKey } from '../../src/control/keys/keyring.js';
import { SSH_NAMESPACE } from '../../src/control/keys/ssh.js';
import type { Approval } from '../../src/ledger/control-record.js';
import { HAS_PHP, HAS_PYTHON, readCases, readVectors, runMaker } from './make-vectors/makers.js';
import { useFolder } from './support/folder.js';
import { keyEntry, keyringOf, privateKeyOf } from './support/keys.js';

const { cases, php, python } = readVectors();
const privateKey = privateKeyOf(cases.seed);
const publicKey = publicKeyOf(Buffer.from(php.publicKey, 'hex'));
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

it('vectors of PHP sodium and Python cryptography are of the same key', () => {
  const bytes = bytesOf(createPublicKey(privateKey)).toString('hex');
  expect([php.publicKey, python.publicKey]).toEqual([bytes, bytes]);
});

describe.each(ours.map((statement, index) => ({ ...statement, index })))('$name', ({ index, text, signature }) => {
  const other = ours[(index + 1) % ours.length]?.text ?? '';

  it('has the same bytes, hash and signature in PHP and Python', () => {
    expect(php.statements[index]).toEqual(ours[index]);
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

describe('the programs that made the vectors', () => {
  const folder = useFolder();

  (HAS_PHP ? it : it.skip)('PHP makes the same', () => {
    expect(readCases()).toEqual(cases);
    expect(runMaker('php/make.php', cases)).toEqual(php);
  });

  (HAS_PYTHON ? it : it.skip)('Python makes the same', () => {
    const statements = python.statements.map(({ ssh, ...made }) => (ssh === undefined ? {} : made));
    expect(runMaker('python/make.py', cases)).toEqual({ ...python, statements });
  });

  it('ssh-keygen verifies its own signatures and those of the hardware key', () => {
    const verifies = (text: string, signature: string, key: string): boolean => {
      folder.write('signers', `signer ${key}\n`);
      folder.write('signature', signature);
      const files = ['-f', folder.at('signers'), '-s', folder.at('signature')];
      const args = ['-Y', 'verify', ...files, '-I', 'signer', '-n', SSH_NAMESPACE];
      return spawnSync('ssh-keygen', args, { input: text }).status === 0;
    };
    for (const [index, { ssh = '', sk }] of python.statements.entries()) {
      const text = ours[index]?.text ?? '';
      expect([verifies(text, ssh, python.sshPublic), verifies(text, sk, python.skPublic)]).toEqual([true, true]);
      expect(verifies(`${text} `, sk, python.skPublic)).toBe(false);
    }
  });
});
