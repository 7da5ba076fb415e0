import { KeyObject } from 'node:crypto';
import { InvalidConfigError } from '../../errors.js';
import { keyNameField } from '../../fields.js';
import { parsePrivateKey, type SigningKey } from './signing-key-file.js';

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
