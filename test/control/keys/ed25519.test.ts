import { createHash, createPublicKey, sign, verify } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  bytesOf,
  publicKeyOf,
  SIGNATURE_LENGTH,
  signText,
  verifyBytes,
  verifyText,
} from '../../../src/control/keys/ed25519.js';
import { isSshSignature, SSH_NAMESPACE, sshField, verifySshText } from '../../../src/control/keys/ssh.js';
import { keyringOf, keyEntry, privateKeyOf, testKey } from '../support/keys.js';

const TEXT = 'payout-queue intent v1\n';
const privateKey = testKey(1);
const publicKey = createPublicKey(privateKey);

/** RFC 8032, section 7.1: TEST 1 and SHA(abc). Seed, public key, message, signature. */
const RFC_8032 = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42',
    'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
    'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
  ],
] as const;

it.each(RFC_8032)('signatures agree with RFC 8032 (seed %s)', (seed, bytes, message, signature) => {
  const key = publicKeyOf(Buffer.from(bytes, 'hex'));
  expect(bytesOf(createPublicKey(privateKeyOf(seed))).toString('hex')).toBe(bytes);
  expect(verifyBytes(Buffer.from(message, 'hex'), Buffer.from(signature, 'hex'), key)).toBe(true);
  expect(verifyBytes(Buffer.from(`${message}00`, 'hex'), Buffer.from(signature, 'hex'), key)).toBe(false);
});

/** The field of the curve, its constant, and the order of its base point. */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;

/** The 32 bytes of an integer, least byte first. */
const encode = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();

describe('a signature', () => {
  const signature = signText(TEXT, privateKey);
  const bytes = Buffer.from(signature, 'base64url');
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = ALPHABET.indexOf(signature.at(-1) ?? '');
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`);

  it('has one form', () => {
    expect(signature).toHaveLength(SIGNATURE_LENGTH);
    expect(verifyText(TEXT, signature, publicKey)).toBe(true);
  });

  it.each([
    ['S + L, which is the same to a careless verifier', Buffer.concat([bytes.subarray(0, 32), encode(s + L)])],
    ['unused bits set', `${signature.slice(0, -1)}${ALPHABET[last + 1] ?? ''}`],
    ['padding', `${signature}==`],
    ['the other alphabet', bytes.toString('base64').replace(/=+$/, '')],
    ['hexadecimal', bytes.toString('hex')],
    ['a space before', ` ${signature}`],
    ['a line break behind', `${signature}\n`],
    ['a space within', `${signature.slice(0, 40)} ${signature.slice(40)}`],
    ['one character less', signature.slice(0, -1)],
    ['one byte less', bytes.subarray(0, 63)],
    ['one byte more', Buffer.concat([bytes, Buffer.alloc(1)])],
    ['nothing', ''],
    ['twice', signature + signature],
    ['zeros', Buffer.alloc(64)],
  ])('is refused with %s', (_, altered) => {
    const text = typeof altered === 'string' ? altered : altered.toString('base64url');
    expect(text).not.toBe(signature);
    expect(verifyText(TEXT, text, publicKey)).toBe(false);
  });

  it('is refused with any bit altered', () => {
    for (let bit = 0; bit < 512; bit += 1) {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(verifyText(TEXT, altered.toString('base64url'), publicKey)).toBe(false);
    }
  });
});

describe('publicKeyOf', () => {
  // Of the eight points of small order, y is 1, -1, 0 (twice), or what doubling takes to 0 (four times).
  const y8 = BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826');
  const ys = [0n, 1n, P - 1n, y8, P - y8];
  const encodings = ys.flatMap((y) => (y + P < 2n ** 255n ? [y, y + P] : [y])).flatMap((y) => [y, y | (1n << 255n)]);
  const weak = encodings.map((encoding) => encode(encoding).toString('hex'));

  it('has to refuse 14 encodings of small order, also those that are not reduced', () => {
    expect([(121666n * D + 121665n) % P, (D * y8 ** 4n + 2n * y8 ** 2n - 1n) % P]).toEqual([0n, 0n]);
    expect(new Set(weak).size).toBe(14);
  });

  it.each(weak)('refuses the weak key %s', (hex) => {
    const bytes = Buffer.from(hex, 'hex');
    expect(() => publicKeyOf(bytes)).toThrow(new RangeError('is a weak key, for which anyone can sign'));
    const ssh = Buffer.concat([sshField('ssh-ed25519'), sshField(bytes)]);
    for (const text of [`ed25519:${bytes.toString('base64')}`, `ssh-ed25519 ${ssh.toString('base64')}`]) {
      expect(() => keyringOf(keyEntry(privateKey, { public: text }))).toThrow(/keys\.0\.public.* is a weak key/);
    }
  });

  it('has a reason: with such a key, one signature is over every text', () => {
    const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), encode(1n)]);
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    expect(verify(null, Buffer.from('whatever'), key, Buffer.concat([encode(1n), Buffer.alloc(32)]))).toBe(true);
  });

  it.each([0, 31, 33, 64])('refuses %i bytes', (length) => {
    expect(() => publicKeyOf(Buffer.alloc(length, 7))).toThrow(RangeError);
  });
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
    ['no last line break', armour().trimEnd()],
    ['a reserved field, which is signed', armour({ reserved: 'x' })],
  ])('counts with %s', (_, armoured) => {
    expect([isSshSignature(armoured), verifySshText(TEXT, armoured, key)]).toEqual([true, true]);
  });

  it.each<[string, string]>([
    ['another purpose', armour({ namespace: 'file' })],
    ['no purpose', armour({ namespace: '' })],
    ['another key named in it', armour({ named: 2 })],
    ['a weaker hash', armour({ hash: 'sha1' })],
    ['another version', armour({ version: 2 })],
    ['another magic', armour({ magic: 'SSHSIX' })],
    ['another type of signature', armour({ type: 'sk-ssh-ed25519@openssh.com' })],
    ['more behind it', armour({ behind: 'x' })],
    ['more behind the signature', armour({ behindSignature: 'x' })],
    ['no head', armour().split('\n').slice(1).join('\n')],
    ['no tail', armour().split('\n').slice(0, -2).join('\n')],
    ['nothing in it', `${HEAD}\n${TAIL}\n`],
    ['a cut', armour().replace(/.{20}\n-----END/, '\n-----END')],
    ['nothing at all', ''],
    [
      'a length beyond its end',
      `${HEAD}\n${Buffer.from('SSHSIG\0\0\0\x01\xff\xff\xff\xff', 'latin1').toString('base64')}\n${TAIL}`,
    ],
  ])('is refused with %s', (_, armoured) => {
    expect(verifySshText(TEXT, armoured, key)).toBe(false);
  });
});
