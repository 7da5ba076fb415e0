import { createHash, type KeyObject } from 'node:crypto';
import { bytesOf, publicKeyOf, verifyBytes } from './ed25519.js';

/** An OpenSSH public key. A hardware key (`sk-`) is bound to an application, such as `ssh:`. */
export interface SshKey {
  readonly type: 'ssh-ed25519' | 'sk-ssh-ed25519@openssh.com';
  readonly key: KeyObject;
  readonly application?: string | undefined;
}

export const SSH_KEY_TYPES = ['ssh-ed25519', 'sk-ssh-ed25519@openssh.com'] as const;

/** @throws RangeError if the bytes are no Ed25519 key */
export function parseSshKey(bytes: Buffer): SshKey {
  const reader = new SshReader(bytes);
  const type = reader.text();
  if (type === 'ssh-ed25519') {
    const key = publicKeyOf(reader.bytes());
    reader.end();
    return { type, key };
  }
  if (type !== 'sk-ssh-ed25519@openssh.com') throw new RangeError('is no Ed25519 key of OpenSSH');
  const key = publicKeyOf(reader.bytes());
  const application = reader.text();
  reader.end();
  return { type, key, application };
}

export function isSameKey(one: SshKey, other: SshKey): boolean {
  return (
    one.type === other.type && one.application === other.application && bytesOf(one.key).equals(bytesOf(other.key))
  );
}

/** As `ssh-add -l` prints it: `SHA256:` and 43 characters of base64. */
export function fingerprintOf({ type, key, application }: SshKey): string {
  const fields = [type, bytesOf(key), ...(application === undefined ? [] : [application])];
  const hash = sha256(Buffer.concat(fields.map((field) => sshField(field))));
  return `SHA256:${hash.toString('base64').replace(/=+$/, '')}`;
}

/**
 * Reads OpenSSH's binary fields: a length of four bytes, then the bytes (RFC 4251, section 5).
 * Every method throws RangeError if the data ends early.
 */
export class SshReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  bytes(): Buffer {
    return this.take(this.uint32());
  }

  text(): string {
    return this.bytes().toString('latin1');
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#data.length) throw new RangeError('is cut off');
    const bytes = this.#data.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  end(): void {
    if (this.#at !== this.#data.length) throw new RangeError('has more than its fields');
  }
}

export function sshField(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/**
 * Signatures of `ssh-keygen -Y sign`, for keys in an agent or on a hardware key. The format is OpenSSH's
 * PROTOCOL.sshsig; sk- signatures are those of its PROTOCOL.u2f.
 */

/** The purpose of a signature (`ssh-keygen -n`): one for another purpose does not count. */
export const SSH_NAMESPACE = 'approval.payout-queue';

const MAGIC = 'SSHSIG';
const VERSION = 1;
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
