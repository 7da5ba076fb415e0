import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { hashText } from '../../src/control/intents/statement.js';
import { bytesOf, publicKeyOf, signText, verifyText } from '../../src/control/keys/ed25519.js';
import { isSignedBy, type KeyringKey } from '../../src/control/keys/keyring.js';
import { SSH_NAMESPACE } from '../../src/control/keys/ssh.js';
import { HAS_PHP, HAS_PYTHON, HAS_SSH_KEYGEN, readCases, runMaker } from './make-vectors/makers.js';
import { useFolder } from './support/folder.js';
import { keyEntry, keyringOf, privateKeyOf } from './support/keys.js';
import { formatCase, readVectors } from './support/vectors.js';

const { cases, php, python } = readVectors();
const privateKey = privateKeyOf(cases.seed);
const publicKey = publicKeyOf(Buffer.from(php.publicKey, 'hex'));
const ours = cases.statements.map((statement) => {
  const text = formatCase(statement);
  return { name: statement.name, text, hash: hashText(text), signature: signText(text, privateKey) };
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
  const input = { publicKey: php.publicKey, statements: ours };
  const forged = { ...input, statements: ours.map((statement) => ({ ...statement, text: `${statement.text} ` })) };

  (HAS_PHP ? it : it.skip)('PHP makes the same, and verifies ours', () => {
    expect(readCases()).toEqual(cases);
    expect(runMaker('php/make.php', cases)).toEqual(php);
    expect(runMaker('php/verify.php', input)).toEqual(ours.map(() => true));
    expect(runMaker('php/verify.php', forged)).toEqual(ours.map(() => false));
  });

  (HAS_PYTHON ? it : it.skip)('Python makes the same, and verifies ours', () => {
    const statements = python.statements.map(({ ssh, ...made }) => (ssh === undefined ? {} : made));
    expect(runMaker('python/make.py', cases)).toEqual({ ...python, statements });
    expect(runMaker('python/verify.py', input)).toEqual(ours.map(() => true));
    expect(runMaker('python/verify.py', forged)).toEqual(ours.map(() => false));
  });

  (HAS_SSH_KEYGEN ? it : it.skip)('ssh-keygen verifies its own signatures and those of the hardware key', () => {
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
