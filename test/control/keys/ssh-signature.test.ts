import { createHash, createPublicKey, sign } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { bytesOf } from '../../../src/control/keys/ed25519.js';
import { isSshSignature, SSH_NAMESPACE, sshField, type SshKey, verifySshText } from '../../../src/control/keys/ssh.js';
import { testKey } from '../support/keys.js';

/** Signatures in OpenSSH's format (PROTOCOL.sshsig), each with one thing that is wrong, and yet signed by the right key. */

const TEXT = 'payout-queue act v1\n';
const privateKey = testKey(1);
const KEY: SshKey = { type: 'ssh-ed25519', key: createPublicKey(privateKey) };

interface Given {
  readonly namespace?: string;
  readonly hash?: string;
  readonly reserved?: string;
  readonly version?: number;
  readonly magic?: string;
  readonly named?: Buffer;
  readonly type?: string;
  readonly behind?: string;
  readonly behindSignature?: string;
}

function blobOf(number: number): Buffer {
  const bytes = bytesOf(createPublicKey(testKey(number)));
  return Buffer.concat([sshField('ssh-ed25519'), sshField(bytes)]);
}

function armour(given: Given = {}): string {
  const { namespace = SSH_NAMESPACE, hash = 'sha512', reserved = '', version = 1, magic = 'SSHSIG' } = given;
  const { named = blobOf(1), type = 'ssh-ed25519', behind = '', behindSignature = '' } = given;
  const digest = createHash(hash).update(TEXT).digest();
  const context = [namespace, reserved, hash].map((field) => sshField(field));
  const signature = sign(null, Buffer.concat([Buffer.from(magic), ...context, sshField(digest)]), privateKey);
  const versionBytes = Buffer.alloc(4);
  versionBytes.writeUInt32BE(version);
  const signed = Buffer.concat([sshField(type), sshField(signature), Buffer.from(behindSignature)]);
  const fields = [Buffer.from(magic), versionBytes, sshField(named), ...context, sshField(signed), Buffer.from(behind)];
  const lines =
    Buffer.concat(fields)
      .toString('base64')
      .match(/.{1,70}/g) ?? [];
  return ['-----BEGIN SSH SIGNATURE-----', ...lines, '-----END SSH SIGNATURE-----', ''].join('\n');
}

describe('verifySshText', () => {
  it.each<[string, string]>([
    ['SHA-512', armour()],
    ['SHA-256', armour({ hash: 'sha256' })],
    ['CRLF', armour().replaceAll('\n', '\r\n')],
    ['no last line break', armour().trimEnd()],
    ['a reserved field, which is signed', armour({ reserved: 'x' })],
  ])('accepts %s', (_, armoured) => {
    expect([isSshSignature(armoured), verifySshText(TEXT, armoured, KEY)]).toEqual([true, true]);
  });

  it.each<[string, string]>([
    ['one made for another purpose', armour({ namespace: 'file' })],
    ['one made for no purpose', armour({ namespace: '' })],
    ['another key named in it', armour({ named: blobOf(2) })],
    ['a weaker hash', armour({ hash: 'sha1' })],
    ['another version', armour({ version: 2 })],
    ['another magic', armour({ magic: 'SSHSIX' })],
    ['another type of signature', armour({ type: 'sk-ssh-ed25519@openssh.com' })],
    ['more behind it', armour({ behind: 'x' })],
    ['more behind the signature', armour({ behindSignature: 'x' })],
    ['no head', armour().split('\n').slice(1).join('\n')],
    ['no tail', armour().split('\n').slice(0, -2).join('\n')],
    ['nothing in it', '-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n'],
    ['a cut one', armour().replace(/.{20}\n-----END/, '\n-----END')],
    ['nothing', ''],
  ])('refuses %s', (_, armoured) => {
    expect(verifySshText(TEXT, armoured, KEY)).toBe(false);
  });

  it('refuses a length that is longer than everything', () => {
    const bytes = Buffer.concat([Buffer.from('SSHSIG'), Buffer.from('00000001ffffffff', 'hex')]).toString('base64');
    const armoured = `-----BEGIN SSH SIGNATURE-----\n${bytes}\n-----END SSH SIGNATURE-----`;
    expect(verifySshText(TEXT, armoured, KEY)).toBe(false);
  });
});
