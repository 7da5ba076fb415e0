import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readSecretFile } from '../../trusted-file.js';
import { bytesOf } from './ed25519.js';

export interface SigningKey {
  readonly name: string;
  readonly privateKey: KeyObject;
}

/**
 * Reads an Ed25519 private key (PKCS#8, PEM) from `payouts keys generate`.
 * @param mayBeOpen - see `readSecretFile`
 * @throws Error with the reason, never with its content
 */
export function readSigningKey(path: string, mayBeOpen: boolean): KeyObject {
  return parsePrivateKey(readSecretFile(path, mayBeOpen));
}

/**
 * As {@link readSigningKey}, for a PEM or a parsed key.
 * @throws Error with the reason, never with its content
 */
export function parsePrivateKey(given: string | KeyObject): KeyObject {
  const key = typeof given === 'string' ? parsePem(given) : given;
  if (key.type !== 'private') throw new Error(`holds a ${key.type} key, not a private one`);
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new Error(`holds a key of type ${key.asymmetricKeyType ?? 'unknown'}, not ed25519`);
  }
  return key;
}

function parsePem(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new Error('holds no private key: a PKCS#8 PEM is expected, as `payouts keys generate` writes it');
  }
}

export function formatPublicKey(privateKey: KeyObject): string {
  return `ed25519:${bytesOf(createPublicKey(privateKey)).toString('base64')}`;
}
