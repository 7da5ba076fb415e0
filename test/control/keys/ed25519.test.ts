import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  bytesOf,
  publicKeyOf,
  SIGNATURE_LENGTH,
  signText,
  verifyBytes,
  verifyText,
} from '../../../src/control/keys/ed25519.js';
import { encode, findSmallOrderPoints, L, P } from './edwards.js';
import { keyringOf, keyEntry, privateKeyOf, testKey } from '../support/keys.js';

/** RFC 8032, section 7.1: TEST 1, 2, 3 and SHA(abc). Seed, public key, message, signature. */
const RFC_8032 = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
  [
    '833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42',
    'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
    'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
  ],
] as const;

describe('verifyBytes', () => {
  it.each(RFC_8032)('agrees with RFC 8032 (seed %s)', (seed, publicKey, message, signature) => {
    const key = publicKeyOf(Buffer.from(publicKey, 'hex'));
    expect(bytesOf(createPublicKey(privateKeyOf(seed))).toString('hex')).toBe(publicKey);
    expect(verifyBytes(Buffer.from(message, 'hex'), Buffer.from(signature, 'hex'), key)).toBe(true);
    expect(verifyBytes(Buffer.from(`${message}00`, 'hex'), Buffer.from(signature, 'hex'), key)).toBe(false);
  });
});

describe('verifyText', () => {
  const text = 'payout-queue intent v1\n';
  const key = testKey(1);
  const publicKey = createPublicKey(key);
  const signature = signText(text, key);
  const bytes = Buffer.from(signature, 'base64url');
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

  it('accepts the one form of a signature', () => {
    expect(signature).toHaveLength(SIGNATURE_LENGTH);
    expect(verifyText(text, signature, publicKey)).toBe(true);
  });

  it('refuses S + L, which is the same signature to a careless verifier', () => {
    const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + L;
    const malleable = Buffer.concat([bytes.subarray(0, 32), encode(s, 0n)]);
    expect(malleable).toHaveLength(64);
    expect(verifyText(text, malleable.toString('base64url'), publicKey)).toBe(false);
  });

  const last = ALPHABET.indexOf(signature.at(-1) ?? '');
  it.each([
    ['unused bits set', `${signature.slice(0, -1)}${ALPHABET[last + 1] ?? ''}`],
    ['padding', `${signature}==`],
    ['the other alphabet', bytes.toString('base64').replace(/=+$/, '')],
    ['hexadecimal', bytes.toString('hex')],
    ['a space before', ` ${signature}`],
    ['a line break behind', `${signature}\n`],
    ['a space within', `${signature.slice(0, 40)} ${signature.slice(40)}`],
    ['one character less', signature.slice(0, -1)],
    ['one byte less', bytes.subarray(0, 63).toString('base64url')],
    ['one byte more', Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64url')],
    ['nothing', ''],
    ['twice', signature + signature],
    ['zeros', Buffer.alloc(64).toString('base64url')],
  ])('refuses %s', (_, altered) => {
    expect(altered).not.toBe(signature);
    expect(verifyText(text, altered, publicKey)).toBe(false);
  });

  it('refuses every signature with one bit altered', () => {
    for (let bit = 0; bit < 512; bit += 1) {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(verifyText(text, altered.toString('base64url'), publicKey)).toBe(false);
    }
  });
});

/** Every encoding, also those that are not reduced, of the points of small order. */
function findWeakKeys(): string[] {
  const ys = new Set(findSmallOrderPoints().map(([, y]) => y));
  const encoded = [...ys].flatMap((y) => (y + P < 2n ** 255n ? [y, y + P] : [y]));
  return encoded.flatMap((y) => [encode(y, 0n), encode(y, 1n)]).map((bytes) => bytes.toString('hex'));
}

describe('publicKeyOf', () => {
  const weak = findWeakKeys();

  it('knows that there are 14 encodings of small order', () => {
    expect(new Set(weak).size).toBe(14);
  });

  it.each(weak)('refuses the weak key %s', (hex) => {
    const bytes = Buffer.from(hex, 'hex');
    expect(() => publicKeyOf(bytes)).toThrow(new RangeError('is a weak key, for which anyone can sign'));
    for (const text of [`ed25519:${bytes.toString('base64')}`, `ssh-ed25519 ${sshBlob(bytes)}`]) {
      expect(() => keyringOf(keyEntry(testKey(1), { public: text }))).toThrow(/keys\.0\.public.* is a weak key/);
    }
  });

  it('has a reason: with such a key, one signature is over every text', () => {
    const identity = encode(1n, 0n);
    const key = createPublicKey({
      key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), identity]),
      format: 'der',
      type: 'spki',
    });
    expect(verify(null, Buffer.from('whatever'), key, Buffer.concat([identity, Buffer.alloc(32)]))).toBe(true);
  });

  it.each([0, 31, 33, 64])('refuses %i bytes', (length) => {
    expect(() => publicKeyOf(Buffer.alloc(length, 7))).toThrow(RangeError);
  });
});

function sshBlob(publicKey: Buffer): string {
  const field = (bytes: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  return Buffer.concat([field(Buffer.from('ssh-ed25519')), field(publicKey)]).toString('base64');
}
