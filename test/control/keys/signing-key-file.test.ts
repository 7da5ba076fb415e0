import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { bytesOf } from '../../../src/control/keys/ed25519.js';
import { formatPublicKey, readSigningKey } from '../../../src/control/keys/signing-key.js';
import { testKey } from '../support/keys.js';

const key = testKey(1);
const pem = key.export({ format: 'pem', type: 'pkcs8' }).toString();
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signing-key-'));
  file = join(folder, 'key.pem');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function readOf(content: string, mode = 0o600, mayBeOpen = false): string {
  writeFileSync(file, content, { mode });
  return formatPublicKey(readSigningKey(file, mayBeOpen));
}

describe('readSigningKey', () => {
  it.each([
    ['as keygen writes it', pem],
    ['without the last line break', pem.trim()],
    ['CRLF', pem.replaceAll('\n', '\r\n')],
    ['a comment before', `# the shop's key\n${pem}`],
  ])('reads a PEM: %s', (_, content) => {
    expect(readOf(content)).toBe(`ed25519:${bytesOf(createPublicKey(key)).toString('base64')}`);
  });

  it.each([0o604, 0o644, 0o606])(
    'refuses one that every user can read (mode %#o), where that is not allowed',
    (mode) => {
      expect(() => readOf(pem, mode)).toThrow(/is open to every user of this machine/);
      expect(readOf(pem, mode, true)).toBe(formatPublicKey(key));
    },
  );

  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const x25519 = generateKeyPairSync('x25519').privateKey;
  const passphrase = 'a passphrase';
  it.each([
    ['RSA', rsa.export({ format: 'pem', type: 'pkcs8' }), 'holds a key of type rsa, not ed25519'],
    ['RSA, PKCS#1', rsa.export({ format: 'pem', type: 'pkcs1' }), 'holds a key of type rsa, not ed25519'],
    ['X25519', x25519.export({ format: 'pem', type: 'pkcs8' }), 'holds a key of type x25519, not ed25519'],
    [
      'encrypted',
      key.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase }),
      'holds no private key',
    ],
    ['a public key', createPublicKey(key).export({ format: 'pem', type: 'spki' }), 'holds no private key'],
    ['base64 alone', pem.split('\n')[1], 'holds no private key'],
    ['cut', pem.slice(0, 60), 'holds no private key'],
    ['empty', '', 'holds no private key'],
    ['two lines of a keyring', 'version: 1\nkeys: []\n', 'holds no private key'],
  ])('refuses %s and shows nothing of it', (_, content, message) => {
    const text = String(content);
    let shown = '';
    try {
      readOf(text);
    } catch (error) {
      shown = inspect(error);
    }
    expect(shown).toContain(message);
    for (const line of text.split('\n')) if (line.length > 20) expect(shown).not.toContain(line.slice(0, 20));
  });

  it('says when there is no file', () => {
    expect(() => readSigningKey(file, false)).toThrow(/cannot be read: ENOENT/);
    expect(() => readSigningKey(folder, true)).toThrow(/cannot be read: EISDIR/);
  });
});
