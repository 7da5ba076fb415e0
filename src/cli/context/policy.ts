import { readConfig, type Environment } from '../../config.js';
import { readKeyringFile } from '../../control/keys/keyring-file.js';
import type { Keyring } from '../../control/keys/keyring.js';
import { readPolicyFile, type LoadedPolicy } from '../../control/policy/policy-file.js';
import { InvalidConfigError } from '../../errors.js';

const FILE = 'PAYOUT_POLICY_FILE';
const KEYS_FILE = 'PAYOUT_KEYS_FILE';

/** A policy, and the keyring with which it was compared. */
export interface PolicyAndKeys {
  readonly loaded: LoadedPolicy;
  /** Undefined where nothing has to be signed. */
  readonly keyring: Keyring | undefined;
}

/**
 * The policy of the environment's account.
 * @throws InvalidConfigError when there is none, or it or the keyring cannot be used
 */
export function requirePolicy(environment: Environment): PolicyAndKeys {
  // First: of several accounts, it says that one has to be chosen.
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], environment);
  const { [FILE]: file } = readConfig([FILE], environment);
  if (file === undefined) {
    throw new InvalidConfigError([{ field: FILE, message: 'is required: the policy of the account' }]);
  }
  return read(file, platformId, FILE, environment);
}

/** The policy of the environment's account; undefined where there is none. @throws InvalidConfigError when it cannot be used */
export function findPolicy(environment: Environment): LoadedPolicy | undefined {
  return readConfig([FILE], environment)[FILE] === undefined ? undefined : requirePolicy(environment).loaded;
}

/**
 * Reads a policy before it is used: of any account, where the environment names none.
 * @throws InvalidConfigError when it or the keyring cannot be used
 */
export function readPolicyDraft(file: string, environment: Environment): PolicyAndKeys {
  return read(file, findAccount(environment), 'file', environment);
}

function read(file: string, platformId: number | undefined, field: string, environment: Environment): PolicyAndKeys {
  const { [KEYS_FILE]: keysFile } = readConfig([KEYS_FILE], environment);
  const keyring = keysFile === undefined ? undefined : readKeyringFile(keysFile, KEYS_FILE);
  return { loaded: readPolicyFile(file, { platformId, keyring, field }), keyring };
}

function findAccount(environment: Environment): number | undefined {
  try {
    return readConfig(['GATEWAY_PLATFORM_ID'], environment).GATEWAY_PLATFORM_ID;
  } catch (error) {
    if (error instanceof InvalidConfigError) return undefined;
    throw error;
  }
}
