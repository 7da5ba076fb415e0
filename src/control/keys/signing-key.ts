import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readSecretFile } from '../../base/trusted-file.js';
import { bytesOf, signTextAside } from './ed25519.js';
import type { Signer } from './signer.js';

/**
 * Reads an Ed25519 private key (PKCS#8, PEM) from `payouts keys generate`.
 * @param mayBeOpen - see `readSecretFile`
 * @throws Error with the reason, never with its content
 */
export function readSigningKey(path: string, mayBeOpen: boolean): KeyObject {
  const key = parsePem(readSecretFile(path, mayBeOpen));
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

/** Signs with a key in this process's memory, on other threads. */
export function keySigner(name: string, privateKey: KeyObject): Signer {
  return { name, sign: async (text) => signTextAside(text, privateKey) };
}
