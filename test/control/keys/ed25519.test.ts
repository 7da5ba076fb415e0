import { createHash, createPublicKey, sign } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { bytesOf, publicKeyOf, signText, verifyText } from '../../../src/control/keys/ed25519.js';
import { isSshSignature, SSH_NAMESPACE, sshField, verifySshText } from '../../../src/control/keys/ssh.js';
import { keyringOf, keyEntry, testKey } from '../support/keys.js';

const TEXT = 'payout-queue intent v1\n';
const privateKey = testKey(1);
const publicKey = createPublicKey(privateKey);

/** The field of the curve, its constant, and the order of its base point. */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

/** The 32 bytes of an integer, least byte first. */
const encode = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();

it('a signature has one form', () => {
  const signature = signText(TEXT, privateKey);
  const bytes = Buffer.from(signature, 'base64url');
  // The same with S + L for S: a verifier that is careless takes it.
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`);
  const malleable = Buffer.concat([bytes.subarray(0, 32), encode(s + ORDER)]);
  const spareBits = signature.slice(0, -1) + String.fromCharCode(signature.charCodeAt(85) + 1);
  const altered = [malleable, bytes.subarray(0, 63), Buffer.concat([bytes, Buffer.alloc(1)])];
  for (const text of [
    ...[`${signature}\n`, `${signature.slice(0, 40)} ${signature.slice(40)}`, `${signature}==`, spareBits, ''],
    ...[bytes.toString('base64'), ...altered.map((other) => other.toString('base64url'))],
  ])
    expect([signature, text].map((given) => verifyText(TEXT, given, publicKey))).toEqual([true, false]);
});

it('a public key of small order is refused in all 14 encodings: one signature would be over every text', () => {
  // Of the eight points of small order, y is 1, -1, 0 (twice), or what doubling takes to 0 (four times).
  const y8 = BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826');
  expect([(121666n * D + 121665n) % P, (D * y8 ** 4n + 2n * y8 ** 2n - 1n) % P]).toEqual([0n, 0n]);
  const ys = [0n, 1n, P - 1n, y8, P - y8];
  const encodings = ys.flatMap((y) => (y + P < 2n ** 255n ? [y, y + P] : [y])).flatMap((y) => [y, y | (1n << 255n)]);
  expect(new Set(encodings).size).toBe(14);
  for (const bytes of encodings.map(encode)) {
    expect(() => publicKeyOf(bytes)).toThrow(new RangeError('is a weak key, for which anyone can sign'));
    const ssh = Buffer.concat([sshField('ssh-ed25519'), sshField(bytes)]);
    for (const text of [`ed25519:${bytes.toString('base64')}`, `ssh-ed25519 ${ssh.toString('base64')}`])
      expect(() => keyringOf(keyEntry(privateKey, { public: text }))).toThrow(/keys\.0\.public.* is a weak key/);
  }
  for (const length of [31, 33]) expect(() => publicKeyOf(Buffer.alloc(length, 7))).toThrow(RangeError);
});

/** In OpenSSH's format (PROTOCOL.sshsig), each with one thing that is wrong, and yet signed by the right key. */
describe('a signature of OpenSSH', () => {
  const [HEAD, TAIL] = ['-----BEGIN SSH SIGNATURE-----', '-----END SSH SIGNATURE-----'];
  const key = { type: 'ssh-ed25519', key: publicKey } as const;
  const blobOf = (number: number): Buffer =>
    Buffer.concat([sshField('ssh-ed25519'), sshField(bytesOf(createPublicKey(testKey(number))))]);
  const RIGHT = { namespace: SSH_NAMESPACE, hash: 'sha512', reserved: '', version: 1, magic: 'SSHSIG', named: 1 };

  function armour(given: Partial<typeof RIGHT & Record<'type' | 'behind' | 'behindSignature', string>> = {}): string {
    const { namespace, hash, reserved, version, magic, named } = { ...RIGHT, ...given };
    const { type = 'ssh-ed25519', behind = '', behindSignature = '' } = given;
    const digest = createHash(hash).update(TEXT).digest();
    const context = [namespace, reserved, hash].map((field) => sshField(field));
    const signature = sign(null, Buffer.concat([Buffer.from(magic), ...context, sshField(digest)]), privateKey);
    const signed = Buffer.concat([sshField(type), sshField(signature), Buffer.from(behindSignature)]);
    const before = [Buffer.from(magic), Buffer.from([0, 0, 0, version]), sshField(blobOf(named))];
    const all = Buffer.concat([...before, ...context, sshField(signed), Buffer.from(behind)]).toString('base64');
    return [HEAD, ...(all.match(/.{1,70}/g) ?? []), TAIL, ''].join('\n');
  }

  it.each<[string, string]>([
    ['SHA-512', armour()],
    ['SHA-256', armour({ hash: 'sha256' })],
    ['CRLF', armour().replaceAll('\n', '\r\n')],
    ['a reserved field, which is signed', armour({ reserved: 'x' })],
  ])('counts with %s', (_, armoured) => {
    expect([isSshSignature(armoured), verifySshText(TEXT, armoured, key)]).toEqual([true, true]);
  });

  it.each<[string, string]>([
    ['another purpose', armour({ namespace: 'file' })],
    ['another key named in it', armour({ named: 2 })],
    ['a weaker hash', armour({ hash: 'sha1' })],
    ['another version', armour({ version: 2 })],
    ['another magic', armour({ magic: 'SSHSIX' })],
    ['another type of signature', armour({ type: 'sk-ssh-ed25519@openssh.com' })],
    ['more behind it', armour({ behind: 'x' })],
    ['more behind the signature', armour({ behindSignature: 'x' })],
    ['no tail', armour().split('\n').slice(0, -2).join('\n')],
    ['a cut', armour().replace(/.{20}\n-----END/, '\n-----END')],
    [
      'a length beyond its end',
      `${HEAD}\n${Buffer.from('SSHSIG\0\0\0\x01\xff\xff\xff\xff', 'latin1').toString('base64')}\n${TAIL}`,
    ],
  ])('is refused with %s', (_, armoured) => {
    expect(verifySshText(TEXT, armoured, key)).toBe(false);
  });
});
