import { createPrivateKey, createPublicKey, KeyObject } from 'node:crypto';
import { InvalidConfigError } from '../../base/errors.js';
import { keyNameField } from '../../base/fields.js';
import { readSecretFile } from '../../base/trusted-file.js';
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
function parsePrivateKey(given: string | KeyObject): KeyObject {
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

/** A signing key for a producer's payouts or a worker's final states. */
export interface SigningKeyOption {
  readonly name: string;
  /** An Ed25519 private key, or its PEM (PKCS#8), from `payouts keys generate`. */
  readonly privateKey: KeyObject | string;
}

/**
 * Checks the key of a producer or a worker.
 * @param option - the option's name, for errors
 * @throws InvalidConfigError naming the option, never with the key
 */
export function parseSigningKey({ name, privateKey }: SigningKeyOption, option: string): SigningKey {
  const parsed = keyNameField.safeParse(name);
  if (!parsed.success) throw invalid(`${option}.name`, parsed.error.issues[0]?.message ?? 'is not valid');
  if (typeof privateKey !== 'string' && !(privateKey instanceof KeyObject)) {
    throw invalid(`${option}.privateKey`, 'must be a KeyObject, or the PEM of a key');
  }
  try {
    return { name: parsed.data, privateKey: parsePrivateKey(privateKey) };
  } catch (error) {
    throw invalid(`${option}.privateKey`, (error as Error).message);
  }
}

function invalid(field: string, message: string): InvalidConfigError {
  return new InvalidConfigError([{ field, message }]);
}
