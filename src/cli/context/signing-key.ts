import { mayReadOpenSecrets, readConfig, type Environment } from '../../config.js';
import { readSigningKey, type SigningKey } from '../../control/signing-key-file.js';
import { InvalidConfigError } from '../../errors.js';

const FILE = 'PAYOUT_SIGNING_KEY_FILE';
const NAME = 'PAYOUT_SIGNING_KEY_NAME';

/**
 * The key with which the environment's account signs payouts; undefined where they are not signed.
 * @throws InvalidConfigError when there is a name without a file or a file without a name, or the file cannot be used
 */
export function readEnvironmentKey(environment: Environment): SigningKey | undefined {
  const { [FILE]: file, [NAME]: name } = readConfig([FILE, NAME], environment);
  if (file === undefined && name === undefined) return undefined;
  if (file === undefined) throw invalid(FILE, `is required, because ${NAME} is set: the file of that key`);
  if (name === undefined) throw invalid(NAME, `is required, because ${FILE} is set: the key's name in the keyring`);
  try {
    return { name, privateKey: readSigningKey(file, mayReadOpenSecrets(environment)) };
  } catch (error) {
    throw invalid(FILE, `${file} ${(error as Error).message}`);
  }
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
