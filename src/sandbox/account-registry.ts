import { InvalidInputError } from '../errors.js';
import { SandboxAccount, type SandboxAccountOptions } from './sandbox-account.js';

/** The accounts of one sandbox. */
export class AccountRegistry {
  readonly #options: ReadonlyMap<number, SandboxAccountOptions>;
  readonly #accounts = new Map<number, SandboxAccount>();

  constructor(options: readonly SandboxAccountOptions[]) {
    this.#options = new Map(options.map((account) => [account.platformId, account]));
    for (const platformId of this.#options.keys()) this.reset(platformId);
  }

  find(platformId: number | undefined): SandboxAccount | undefined {
    return platformId === undefined ? undefined : this.#accounts.get(platformId);
  }

  /**
   * The account with this id, or the only one.
   * @throws InvalidInputError when there is no such account, or several and no id is given
   */
  get(platformId?: number): SandboxAccount {
    const [only, ...others] = this.#accounts.values();
    const account = platformId === undefined && others.length === 0 ? only : this.find(platformId);
    if (account !== undefined) return account;
    const message = `must be one of ${[...this.#accounts.keys()].join(', ')}`;
    throw new InvalidInputError([{ field: 'platformId', message }]);
  }

  /** Restores an account's initial state: unblocked, without payments and statistics. */
  reset(platformId: number): void {
    const options = this.#options.get(platformId);
    if (options !== undefined) this.#accounts.set(platformId, new SandboxAccount(options));
  }
}
