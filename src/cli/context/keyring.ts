import { readConfig, type Environment } from '../../config.js';
import { readKeyringFile } from '../../control/keys/keyring-file.js';
import type { BoundKeyring, Keyring } from '../../control/keys/keyring.js';
import { InvalidConfigError } from '../../errors.js';
import { readOpenAudience } from './audience.js';

const FILE = 'PAYOUT_KEYS_FILE';

/** Whether operators sign their decisions here. @throws InvalidConfigError when the setting is not usable */
export function hasKeyring(environment: Environment): boolean {
  return readConfig([FILE], environment)[FILE] !== undefined;
}

/**
 * The keyring of the environment's account; undefined where there is none.
 * @throws InvalidConfigError when it cannot be used, or nothing says which environment's signatures count
 */
export function findKeyring(environment: Environment): BoundKeyring | undefined {
  return hasKeyring(environment) ? requireKeyring(environment) : undefined;
}

/** As {@link findKeyring}, for a command that needs it. @throws InvalidConfigError when there is none, too */
export function requireKeyring(environment: Environment): BoundKeyring {
  return requireKeys(environment).for(readOpenAudience(environment));
}

/** The keys alone, of any account. @throws InvalidConfigError when there are none, or they cannot be used */
export function requireKeys(environment: Environment): Keyring {
  const { [FILE]: path } = readConfig([FILE], environment);
  if (path !== undefined) return readKeyringFile(path, FILE);
  throw new InvalidConfigError([{ field: FILE, message: 'is required: the keyring, with the public keys that count' }]);
}
