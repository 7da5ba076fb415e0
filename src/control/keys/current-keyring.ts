import type { Logger } from '../../base/logger.js';
import { CurrentFile } from './current-file.js';
import { type KeyFinder, type Keyring, type KeyringKey, readKeyringFile } from './keyring.js';

/** The keys whose signatures count for an account, current at each check. */
export interface AccountKeyring extends KeyFinder, Pick<Keyring, 'keys'> {
  readonly reloadTrouble?: string | undefined;
}

/** Rereads the keyring's file, so that a key can be revoked while the worker runs. */
export class CurrentKeyring implements Pick<Keyring, 'keys' | 'find'> {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #file: CurrentFile<Keyring>;

  /** @throws InvalidConfigError if the file is missing, not trusted, or invalid */
  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
    this.#file = new CurrentFile(() => readKeyringFile(path, 'PAYOUT_KEYS_FILE'));
    this.#log('only signed payouts are sent');
  }

  get keys(): readonly KeyringKey[] {
    return this.#file.content.keys;
  }

  find(name: string): KeyringKey | undefined {
    return this.#file.content.find(name);
  }

  for(audience: string): AccountKeyring {
    const file = this.#file;
    return {
      audience,
      get keys() {
        return file.content.keys;
      },
      get reloadTrouble() {
        return file.trouble;
      },
      find: (name) => this.find(name),
    };
  }

  /** The new file applies from the next check. An unusable one changes nothing, and is reported. */
  reload(): void {
    if (this.#file.reload()) this.#log('the keyring was read again');
    else {
      const { trouble: error } = this.#file;
      this.#logger.error({ error }, 'the keyring could not be read again: the one before still counts');
    }
  }

  #log(message: string): void {
    const keys = this.keys.map(({ name, role, revoked }) => `${name} (${revoked ? 'revoked' : role})`);
    this.#logger.info({ keysFile: this.#path, keys }, message);
  }
}
