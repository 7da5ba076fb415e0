import { InvalidConfigError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { Audience } from './audience.js';
import { readKeyringFile } from './keyring-file.js';
import type { KeyFinder, Keyring, KeyringKey } from './keyring.js';

const FIELD = 'PAYOUT_KEYS_FILE';

/** The keyring of a worker, and the environment for which signatures have to be to count for one of its accounts. */
export interface AccountKeyring extends KeyFinder, Pick<Keyring, 'keys'> {
  readonly current: CurrentKeyring;
}

/** The keyring of a worker as its file was read last, so that a key can be revoked while it runs. */
export class CurrentKeyring implements Pick<Keyring, 'keys' | 'find'> {
  readonly #file: string;
  readonly #logger: Logger;
  #keyring: Keyring;
  #reloadTrouble: string | undefined;

  /** @throws InvalidConfigError when the file is missing, not trusted, or makes no sense */
  constructor(file: string, logger: Logger) {
    this.#file = file;
    this.#logger = logger;
    this.#keyring = readKeyringFile(file, FIELD);
    logger.info({ keysFile: file, keys: this.#names }, 'only signed payouts are sent');
  }

  get keys(): readonly KeyringKey[] {
    return this.#keyring.keys;
  }

  find(name: string): KeyringKey | undefined {
    return this.#keyring.find(name);
  }

  /** The keys whose signatures count for an account, as they are at each check. */
  for(audience: Audience): AccountKeyring {
    const keys = (): readonly KeyringKey[] => this.keys;
    return {
      ...audience,
      current: this,
      get keys() {
        return keys();
      },
      find: (name) => this.find(name),
    };
  }

  /** Why the file could not be used when it was read last: the keyring is the one before. Undefined where it could. */
  get reloadTrouble(): string | undefined {
    return this.#reloadTrouble;
  }

  /** Reads the file again: it counts from the next check on. One that cannot be used changes nothing, and is reported. */
  reload(): void {
    try {
      this.#keyring = readKeyringFile(this.#file, FIELD);
      this.#reloadTrouble = undefined;
      this.#logger.info({ keysFile: this.#file, keys: this.#names }, 'the keyring was read again');
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      this.#reloadTrouble = error.problems.map(({ message }) => message).join('; ');
      this.#logger.error(
        { error: this.#reloadTrouble },
        'the keyring could not be read again: the one before still counts',
      );
    }
  }

  get #names(): string[] {
    return this.keys.map(({ name, role, revoked }) => `${name} (${revoked ? 'revoked' : role})`);
  }
}
