import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';

/** Pure Ed25519 (RFC 8032), like PHP's sodium and Python's cryptography. */

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** The DER before the 32 bytes of a public key (RFC 8410). */
const PUBLIC_KEY_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * The y of the points whose order divides 8, without the sign bit; the last two are 0 and 1 again, not reduced. Anyone
 * can sign for such a key: there is no private key, and the signature hardly depends on the text.
 */
const WEAK_KEYS: ReadonlySet<string> = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

function isWeak(bytes: Buffer): boolean {
  const y = Buffer.from(bytes);
  y.writeUInt8(y.readUInt8(KEY_BYTES - 1) & 0x7f, KEY_BYTES - 1);
  return WEAK_KEYS.has(y.toString('hex'));
}

/** @throws RangeError if there are not 32 bytes, or anyone could sign for the key */
export function publicKeyOf(bytes: Buffer): KeyObject {
  if (bytes.length !== KEY_BYTES) {
    throw new RangeError(`has ${bytes.length} bytes, not the ${KEY_BYTES} of an Ed25519 key`);
  }
  if (isWeak(bytes)) throw new RangeError('is a weak key, for which anyone can sign');
  return createPublicKey({ key: Buffer.concat([PUBLIC_KEY_HEAD, bytes]), format: 'der', type: 'spki' });
}

export function bytesOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_KEY_HEAD.length);
}

/** Signs on another thread. */
export async function signTextAside(text: string, privateKey: KeyObject): Promise<string> {
  return new Promise((resolve, reject) => {
    sign(null, Buffer.from(text, 'utf8'), privateKey, (error, signature) => {
      if (error === null) resolve(signature.toString('base64url'));
      else reject(error);
    });
  });
}

/** Verifies a signature. Only its one canonical base64url form counts, so that no second text is the same signature. */
export function verifyText(text: string, signature: string, publicKey: KeyObject): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  if (bytes.toString('base64url') !== signature) return false;
  return verifyBytes(Buffer.from(text, 'utf8'), bytes, publicKey);
}

export function verifyBytes(data: Buffer, signature: Buffer, publicKey: KeyObject): boolean {
  return signature.length === SIGNATURE_BYTES && verify(null, data, publicKey, signature);
}
