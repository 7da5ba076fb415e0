import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readSecretFile } from '../secret-file.js';
import { bytesOf } from './ed25519.js';

/** A private key and the name that it has in the keyring. */
export interface SigningKey {
  readonly name: string;
  readonly privateKey: KeyObject;
}

/**
 * Reads a private key of Ed25519 (PKCS#8, PEM), as `payouts keygen` writes it.
 * @param mayBeOpen - see `readSecretFile`
 * @throws Error that says why it cannot be used, never with its content
 */
export function readSigningKey(path: string, mayBeOpen: boolean): KeyObject {
  const content = readSecretFile(path, mayBeOpen);
  let key: KeyObject;
  try {
    key = createPrivateKey(content);
  } catch {
    throw new Error('holds no private key: a PKCS#8 PEM is expected, as `payouts keygen` writes it');
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new Error(`holds a key of type ${key.asymmetricKeyType ?? 'unknown'}, not ed25519`);
  }
  return key;
}

/** A public key as a keyring names it: `ed25519:` and base64. */
export function formatPublicKey(privateKey: KeyObject): string {
  return `ed25519:${bytesOf(createPublicKey(privateKey)).toString('base64')}`;
}
