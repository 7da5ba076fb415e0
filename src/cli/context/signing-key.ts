import { mayReadOpenSecrets, readConfig, type Environment } from '../../config.js';
import { readSigningKey, type SigningKey } from '../../control/keys/signing-key-file.js';
import { InvalidConfigError } from '../../errors.js';
import type { PayoutProducerOptions } from '../../control/payout-producer.js';
import { readAudience } from './audience.js';

const FILE = 'PAYOUT_SIGNING_KEY_FILE';
const WORKER_FILE = 'PAYOUT_WORKER_KEY_FILE';

/**
 * The key with which the environment's account signs payouts; undefined where they are not signed.
 * @throws InvalidConfigError when there is a name without a file or a file without a name, or the file cannot be used
 */
export function readEnvironmentKey(environment: Environment): SigningKey | undefined {
  const config = readConfig([FILE, 'PAYOUT_SIGNING_KEY_NAME'], environment);
  return readKey(environment, [FILE, config[FILE]], ['PAYOUT_SIGNING_KEY_NAME', config.PAYOUT_SIGNING_KEY_NAME]);
}

/**
 * The key with which a worker signs final states; undefined where they are not signed.
 * @throws InvalidConfigError as {@link readEnvironmentKey}
 */
export function readWorkerKey(environment: Environment): SigningKey | undefined {
  const config = readConfig([WORKER_FILE, 'PAYOUT_WORKER_KEY_NAME'], environment);
  return readKey(
    environment,
    [WORKER_FILE, config[WORKER_FILE]],
    ['PAYOUT_WORKER_KEY_NAME', config.PAYOUT_WORKER_KEY_NAME],
  );
}

type Given = readonly [variable: string, value: string | undefined];

function readKey(
  environment: Environment,
  [fileVariable, file]: Given,
  [nameVariable, name]: Given,
): SigningKey | undefined {
  if (file === undefined && name === undefined) return undefined;
  if (file === undefined) {
    throw invalid(fileVariable, `is required, because ${nameVariable} is set: the file of that key`);
  }
  if (name === undefined) {
    throw invalid(nameVariable, `is required, because ${fileVariable} is set: the key's name in the keyring`);
  }
  try {
    return { name, privateKey: readSigningKey(file, mayReadOpenSecrets(environment)) };
  } catch (error) {
    throw invalid(fileVariable, `${file} ${(error as Error).message}`);
  }
}

/**
 * How the environment's account signs payouts, and for which environment; both undefined where they are not signed.
 * @throws InvalidConfigError as {@link readEnvironmentKey}, and where nothing says for which environment
 */
export function readSigning(environment: Environment): Pick<PayoutProducerOptions, 'signingKey' | 'audience'> {
  const signingKey = readEnvironmentKey(environment);
  return { signingKey, audience: signingKey && readAudience(environment) };
}

/** As {@link readEnvironmentKey}, for a command that does nothing without a key. @throws InvalidConfigError */
export function requireSigningKey(environment: Environment): SigningKey {
  const key = readEnvironmentKey(environment);
  if (key === undefined) throw invalid(FILE, 'is required: the file of the key that signs, see `payouts keygen`');
  return key;
}

function invalid(field: string, message: string): InvalidConfigError {
  return new InvalidConfigError([{ field, message }]);
}
