import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { bytesOf, publicKeyOf, signText, verifyText } from '../../src/control/keys/ed25519.js';
import { isSignedBy, type KeyringKey } from '../../src/control/keys/keyring.js';
import { SSH_NAMESPACE } from '../../src/control/keys/ssh.js';
import { hashText } from '../../src/control/intents/statement.js';
import { HAS_PHP, HAS_PYTHON, HAS_SSH_KEYGEN, readCases, runMaker } from './make-vectors/makers.js';
import { keyEntry, keyringOf, privateKeyOf } from './support/keys.js';
import { formatCase, readVectors } from './support/vectors.js';

const { cases, php, python } = readVectors();
const privateKey = privateKeyOf(cases.seed);
const publicKey = publicKeyOf(Buffer.from(php.publicKey, 'hex'));
const ours = cases.statements.map((statement) => {
  const text = formatCase(statement);
  return { name: statement.name, text, hash: hashText(text), signature: signText(text, privateKey) };
});
const plain = (statements: typeof php.statements): typeof ours =>
  statements.map(({ name, text, hash, signature }) => ({ name, text, hash, signature }));

function keyOf(text: string): KeyringKey {
  const [key] = keyringOf(keyEntry(privateKey, { public: text })).keys;
  if (key === undefined) throw new Error('no key');
  return key;
}
const sshKey = keyOf(python.sshPublic);
const skKey = keyOf(python.skPublic);
const numbers = cases.statements.map(({ name }, index) => [name, index] as const);

describe('vectors of PHP sodium and Python cryptography', () => {
  it('are of the same key', () => {
    expect([php.publicKey, python.publicKey]).toEqual(
      Array(2).fill(bytesOf(createPublicKey(privateKey)).toString('hex')),
    );
  });

  it.each(numbers)('%s: the same bytes, hash and signature', (_, index) => {
    expect(plain(php.statements)[index]).toEqual(ours[index]);
    expect(plain(python.statements)[index]).toEqual(ours[index]);
  });

  it.each(numbers)('%s: the signature verifies, over this text only', (_, index) => {
    const [made, other] = [php.statements[index], ours[(index + 1) % ours.length]];
    expect(verifyText(ours[index]?.text ?? '', made?.signature ?? '', publicKey)).toBe(true);
    expect(verifyText(other?.text ?? '', made?.signature ?? '', publicKey)).toBe(false);
  });
});

describe('vectors of ssh-keygen and of a hardware key', () => {
  it.each(numbers)('%s: verify, over this text and with this key only', (_, index) => {
    const { ssh = '', sk = '' } = python.statements[index] ?? {};
    const [text, other] = [ours[index]?.text ?? '', ours[(index + 1) % ours.length]?.text ?? ''];
    expect([isSignedBy(sshKey, text, ssh), isSignedBy(skKey, text, sk)]).toEqual([true, true]);
    expect([isSignedBy(sshKey, other, ssh), isSignedBy(skKey, other, sk)]).toEqual([false, false]);
    expect([isSignedBy(skKey, text, ssh), isSignedBy(sshKey, text, sk)]).toEqual([false, false]);
  });

  it('a hardware key that nobody touched signs nothing', () => {
    expect(isSignedBy(skKey, ours[0]?.text ?? '', python.skUntouched)).toBe(false);
  });

  it('a key on hardware does not count by a plain signature', () => {
    expect(isSignedBy(skKey, ours[0]?.text ?? '', ours[0]?.signature ?? '')).toBe(false);
  });
});

const ifPhp = HAS_PHP ? it : it.skip;
const ifPython = HAS_PYTHON ? it : it.skip;
const ifSshKeygen = HAS_SSH_KEYGEN ? it : it.skip;

describe('the programs that made the vectors', () => {
  const input = { publicKey: php.publicKey, statements: ours };
  const forged = { ...input, statements: ours.map((statement) => ({ ...statement, text: `${statement.text} ` })) };

  ifPhp('PHP makes the same, and verifies ours', () => {
    expect(readCases()).toEqual(cases);
    expect(runMaker('php/make.php', cases)).toEqual(php);
    expect(runMaker('php/verify.php', input)).toEqual(ours.map(() => true));
    expect(runMaker('php/verify.php', forged)).toEqual(ours.map(() => false));
  });

  ifPython('Python makes the same, and verifies ours', () => {
    const statements = python.statements.map(({ ssh, ...made }) => (ssh === undefined ? {} : made));
    expect(runMaker('python/make.py', cases)).toEqual({ ...python, statements });
    expect(runMaker('python/verify.py', input)).toEqual(ours.map(() => true));
    expect(runMaker('python/verify.py', forged)).toEqual(ours.map(() => false));
  });

  ifSshKeygen('ssh-keygen verifies its own signatures and those of the synthetic hardware key', () => {
    const folder = mkdtempSync(join(tmpdir(), 'vectors-'));
    try {
      for (const [index, { ssh = '', sk }] of python.statements.entries()) {
        const text = ours[index]?.text ?? '';
        expect(verifiesInSsh(folder, text, ssh, python.sshPublic)).toBe(true);
        expect(verifiesInSsh(folder, text, sk, python.skPublic)).toBe(true);
        expect(verifiesInSsh(folder, `${text} `, sk, python.skPublic)).toBe(false);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function verifiesInSsh(folder: string, text: string, signature: string, key: string): boolean {
  const [signers, file] = [join(folder, 'signers'), join(folder, 'signature')];
  writeFileSync(signers, `signer ${key}\n`);
  writeFileSync(file, signature);
  const args = ['-Y', 'verify', '-f', signers, '-I', 'signer', '-n', SSH_NAMESPACE, '-s', file];
  return spawnSync('ssh-keygen', args, { input: text }).status === 0;
}
