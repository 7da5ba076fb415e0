import { parse, YAMLParseError } from 'yaml';
import { InvalidConfigError } from '../../errors.js';
import { readTrustedFile } from '../../trusted-file.js';
import { Keyring } from './keyring.js';

/**
 * Reads a keyring, YAML or JSON.
 * @param field - the setting that names the file, for errors; @defaultValue `keyring`
 * @throws InvalidConfigError if the file is missing, not trusted or invalid
 */
export function readKeyringFile(path: string, field = 'keyring'): Keyring {
  try {
    return Keyring.parse(parseYaml(checkPublic(readTrustedFile(path))));
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) {
      throw new InvalidConfigError([{ field, message: `${path} ${(error as Error).message}` }]);
    }
    throw new InvalidConfigError(
      error.problems.map((problem) => ({ field, message: `${path}: ${problem.field} ${problem.message}` })),
    );
  }
}

/** Runs before parsing, because errors show values. */
function checkPublic(text: string): string {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return text;
  throw new Error('holds a private key. A keyring holds public keys only, and its readers are not the owner of a key');
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    throw new Error(`is no YAML: ${error.message.split('\n')[0] ?? ''}`, { cause: error });
  }
}
