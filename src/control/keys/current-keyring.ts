import { InvalidConfigError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { Audience } from './audience.js';
import { type KeyFinder, type Keyring, type KeyringKey, readKeyringFile } from './keyring.js';

const FIELD = 'PAYOUT_KEYS_FILE';

/** A worker's keyring, and the environment whose signatures count for an account. */
export interface AccountKeyring extends KeyFinder, Pick<Keyring, 'keys'> {
  readonly current: CurrentKeyring;
}

/** Rereads the keyring's file, so that a key can be revoked while the worker runs. */
export class CurrentKeyring implements Pick<Keyring, 'keys' | 'find'> {
  readonly #file: string;
  readonly #logger: Logger;
  #keyring: Keyring;
  #reloadTrouble: string | undefined;

  /** @throws InvalidConfigError if the file is missing, not trusted, or invalid */
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

  /** The keys whose signatures count for an account, current at each check. */
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

  /** Why the last reading failed, so that the earlier keyring remains. */
  get reloadTrouble(): string | undefined {
    return this.#reloadTrouble;
  }

  /** The new file applies from the next check. An unusable one changes nothing, and is reported. */
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
