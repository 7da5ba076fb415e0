import { readConfig, type Environment } from '../../config.js';
import { readKeyringFile } from '../../control/keyring-file.js';
import type { Keyring } from '../../control/keyring.js';
import { InvalidConfigError } from '../../errors.js';

const FILE = 'PAYOUT_KEYS_FILE';

/** Whether operators sign their decisions here. @throws InvalidConfigError when the setting is not usable */
export function hasKeyring(environment: Environment): boolean {
  return readConfig([FILE], environment)[FILE] !== undefined;
}

/** The keyring of the environment; undefined where there is none. @throws InvalidConfigError when it cannot be used */
export function findKeyring(environment: Environment): Keyring | undefined {
  const { [FILE]: path } = readConfig([FILE], environment);
  return path === undefined ? undefined : readKeyringFile(path, FILE);
}

/**
 * The keyring of the environment.
 * @throws InvalidConfigError when there is none, or it cannot be used
 */
export function requireKeyring(environment: Environment): Keyring {
  const keyring = findKeyring(environment);
  if (keyring !== undefined) return keyring;
  throw new InvalidConfigError([{ field: FILE, message: 'is required: the keyring, with the public keys that count' }]);
}
