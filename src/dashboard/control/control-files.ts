import { systemClock } from '../../clock.js';
import { readKeyringFile } from '../../control/keyring-file.js';
import type { Keyring } from '../../control/keyring.js';
import { readPolicyFile, type LoadedPolicy } from '../../control/policy/policy-file.js';
import type { Logger } from '../../logger.js';
import { CurrentFile } from './current-file.js';

/** With what a dashboard judges by itself what stands in Redis. */
export interface ControlFilesOptions {
  readonly keysFile?: string | undefined;
  /** The policy of each account that has one. */
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
}

/** The keyring and the policies of a dashboard, each as its file stands now. */
export class ControlFiles {
  readonly #keyring: CurrentFile<Keyring> | undefined;
  readonly #policies = new Map<number, CurrentFile<LoadedPolicy>>();

  /** @throws InvalidConfigError when a file is missing, not trusted, or makes no sense */
  constructor({ keysFile, policyFiles = new Map() }: ControlFilesOptions, logger: Logger) {
    const now = (): number => systemClock.now();
    if (keysFile !== undefined) {
      const read = (): Keyring => readKeyringFile(keysFile, 'keysFile');
      this.#keyring = new CurrentFile({ name: 'the keyring', read, now, logger });
    }
    for (const [platformId, file] of policyFiles) {
      const read = (): LoadedPolicy => readPolicyFile(file, { platformId, keyring: this.keyring, field: 'policyFile' });
      const name = `the policy of account ${platformId}`;
      this.#policies.set(platformId, new CurrentFile({ name, read, now, logger }));
    }
  }

  /** Undefined where the dashboard has none, and can verify nothing. */
  get keyring(): Keyring | undefined {
    return this.#keyring?.content;
  }

  /** Undefined where the dashboard has none for this account. */
  policyOf(platformId: number): LoadedPolicy | undefined {
    return this.#policies.get(platformId)?.content;
  }
}
