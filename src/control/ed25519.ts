import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';

/** Pure Ed25519 (RFC 8032), as PHP's sodium and Python's cryptography know it. */

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** Characters of a signature as base64url without padding. */
export const SIGNATURE_LENGTH = 86;
/** The DER that stands before the 32 bytes of a public key (RFC 8410). */
const PUBLIC_KEY_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Makes a key of its 32 bytes.
 * @throws RangeError when there are not 32
 */
export function publicKeyOf(bytes: Buffer): KeyObject {
  if (bytes.length !== KEY_BYTES) throw new RangeError(`an Ed25519 key has ${KEY_BYTES} bytes, not ${bytes.length}`);
  return createPublicKey({ key: Buffer.concat([PUBLIC_KEY_HEAD, bytes]), format: 'der', type: 'spki' });
}

/** The 32 bytes of a public key. */
export function bytesOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_KEY_HEAD.length);
}

/** @returns the signature as base64url, {@link SIGNATURE_LENGTH} characters */
export function signText(text: string, privateKey: KeyObject): string {
  return sign(null, Buffer.from(text, 'utf8'), privateKey).toString('base64url');
}

/**
 * Whether the signature is this key's over this text. Only the one base64url form of a signature counts, so that no second
 * text is the same signature.
 */
export function verifyText(text: string, signature: string, publicKey: KeyObject): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  if (bytes.toString('base64url') !== signature) return false;
  return verifyBytes(Buffer.from(text, 'utf8'), bytes, publicKey);
}

/** As {@link verifyText}, for bytes. */
export function verifyBytes(data: Buffer, signature: Buffer, publicKey: KeyObject): boolean {
  return signature.length === SIGNATURE_BYTES && verify(null, data, publicKey, signature);
}
