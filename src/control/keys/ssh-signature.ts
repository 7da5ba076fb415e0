import { createHash } from 'node:crypto';
import { verifyBytes } from './ed25519.js';
import { isSameKey, parseSshKey, type SshKey } from './ssh-key.js';
import { SshReader, sshField } from './ssh-reader.js';

/**
 * Signatures of `ssh-keygen -Y sign`, for keys in an agent or on a hardware key. The format is OpenSSH's
 * PROTOCOL.sshsig; sk- signatures are those of its PROTOCOL.u2f.
 */

/** The purpose of a signature (`ssh-keygen -n`): one for another purpose does not count. */
export const SSH_NAMESPACE = 'approval.payout-queue';

const MAGIC = 'SSHSIG';
const VERSION = 1;
/** The hardware key was touched. */
const USER_PRESENT = 0x01;
const HEAD = '-----BEGIN SSH SIGNATURE-----';
const TAIL = '-----END SSH SIGNATURE-----';

export function isSshSignature(signature: string): boolean {
  return signature.startsWith(HEAD);
}

/**
 * Verifies an armoured signature of a text, made for {@link SSH_NAMESPACE}.
 * @returns false also for malformed input
 */
export function verifySshText(text: string, armoured: string, publicKey: SshKey): boolean {
  try {
    return verifyParsed(text, new SshReader(dearmour(armoured)), publicKey);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function dearmour(armoured: string): Buffer {
  const lines = armoured.trim().split(/\r?\n/);
  if (lines.shift() !== HEAD || lines.pop() !== TAIL) throw new RangeError('is no SSH signature');
  return Buffer.from(lines.join(''), 'base64');
}

function verifyParsed(text: string, reader: SshReader, publicKey: SshKey): boolean {
  if (reader.take(MAGIC.length).toString('latin1') !== MAGIC || reader.uint32() !== VERSION) return false;
  const signer = parseSshKey(reader.bytes());
  const namespace = reader.text();
  const reserved = reader.bytes();
  const hashName = reader.text();
  const signature = new SshReader(reader.bytes());
  reader.end();
  if (!isSameKey(signer, publicKey) || namespace !== SSH_NAMESPACE) return false;
  if (hashName !== 'sha512' && hashName !== 'sha256') return false;
  const hash = createHash(hashName).update(text, 'utf8').digest();
  const signed = Buffer.concat([
    Buffer.from(MAGIC),
    ...[namespace, reserved, hashName, hash].map((field) => sshField(field)),
  ]);
  return verifySignature(signed, signature, publicKey);
}

function verifySignature(signed: Buffer, signature: SshReader, { type, key, application = '' }: SshKey): boolean {
  if (signature.text() !== type) return false;
  const bytes = signature.bytes();
  if (type === 'ssh-ed25519') {
    signature.end();
    return verifyBytes(signed, bytes, key);
  }
  const flagsAndCounter = signature.take(5);
  signature.end();
  if (((flagsAndCounter[0] ?? 0) & USER_PRESENT) === 0) return false;
  return verifyBytes(Buffer.concat([sha256(application), flagsAndCounter, sha256(signed)]), bytes, key);
}

function sha256(data: Buffer | string): Buffer {
  return createHash('sha256').update(data).digest();
}
