import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { bytesOf, publicKeyOf, signTextAside, verifyBytes } from '../../src/control/keys/ed25519.js';

interface Vector {
  readonly priv: string;
  readonly pub: string;
  readonly msg: string;
  readonly sig: string;
}

/** Of RFC 8032, section 7.1. */
const vectors = JSON.parse(
  readFileSync(new URL('../vectors/rfc8032-ed25519.json', import.meta.url), 'utf8'),
) as readonly Vector[];

/** The DER before the 32 bytes of a private key (RFC 8410). */
const PRIVATE_KEY_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

it.each(vectors)('a signature is that of RFC 8032 for the public key $pub', async ({ priv, pub, msg, sig }) => {
  const [message, signature] = [Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex')];
  const privateKey = createPrivateKey({
    key: Buffer.concat([PRIVATE_KEY_HEAD, Buffer.from(priv, 'hex')]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = publicKeyOf(Buffer.from(pub, 'hex'));
  expect(bytesOf(publicKey).toString('hex')).toBe(pub);
  expect(verifyBytes(message, signature, publicKey)).toBe(true);
  expect(verifyBytes(Buffer.concat([message, Buffer.of(0)]), signature, publicKey)).toBe(false);
  for (let bit = 0; bit < 512; bit += 1) {
    const other = Buffer.from(signature);
    other.writeUInt8(other.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect([bit, verifyBytes(message, other, publicKey)]).toEqual([bit, false]);
  }
  // What is signed here is always text.
  const text = message.toString('utf8');
  if (Buffer.from(text).equals(message))
    expect(await signTextAside(text, privateKey)).toBe(signature.toString('base64url'));
});

it('RFC 8032 has vectors of texts and of bytes', () => {
  expect(vectors).toHaveLength(4);
});
