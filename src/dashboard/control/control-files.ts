import { systemClock } from '../../clock.js';
import { openAudience, type Audience } from '../../control/keys/audience.js';
import { audienceOf } from '../../account-settings.js';
import { readKeyringFile } from '../../control/keys/keyring-file.js';
import type { BoundKeyring, Keyring } from '../../control/keys/keyring.js';
import { readPolicyFile, type LoadedPolicy } from '../../control/policy/policy-file.js';
import { InvalidConfigError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import { CurrentFile } from './current-file.js';

/** With what a dashboard judges by itself what stands in Redis. */
export interface ControlFilesOptions {
  readonly platformId: number | readonly number[];
  readonly keysFile?: string | undefined;
  /** For which environment signatures have to be to count, of each account. */
  readonly audiences?: ReadonlyMap<number, string> | undefined;
  readonly acceptUnboundUntil?: string | undefined;
  /** The policy of each account that has one. */
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
}

/** The keyring and the policies of a dashboard, each as its file stands now. */
export class ControlFiles {
  readonly #keyring: CurrentFile<Keyring> | undefined;
  readonly #audiences = new Map<number, Audience>();
  readonly #policies = new Map<number, CurrentFile<LoadedPolicy>>();

  /** @throws InvalidConfigError when a file is missing, not trusted, or makes no sense */
  constructor(
    { platformId: given, keysFile, audiences, acceptUnboundUntil, policyFiles = new Map() }: ControlFilesOptions,
    logger: Logger,
  ) {
    const now = (): number => systemClock.now();
    if (keysFile !== undefined) {
      const read = (): Keyring => readKeyringFile(keysFile, 'keysFile');
      this.#keyring = new CurrentFile({ name: 'the keyring', read, now, logger });
    }
    for (const platformId of keysFile === undefined ? [] : [given].flat()) {
      const audience = requireAudience(audiences, platformId);
      this.#audiences.set(platformId, openAudience(audience, acceptUnboundUntil, systemClock));
    }
    for (const [platformId, file] of policyFiles) {
      const keyring = (): Keyring | undefined => this.#keyring?.content;
      const read = (): LoadedPolicy => readPolicyFile(file, { platformId, keyring: keyring(), field: 'policyFile' });
      const name = `the policy of account ${platformId}`;
      this.#policies.set(platformId, new CurrentFile({ name, read, now, logger }));
    }
  }

  /** Undefined where the dashboard has none, and can verify nothing. */
  keyringOf(platformId: number): BoundKeyring | undefined {
    const audience = this.#audiences.get(platformId);
    return audience && this.#keyring?.content.for(audience);
  }

  /** Undefined where the dashboard has none for this account. */
  policyOf(platformId: number): LoadedPolicy | undefined {
    return this.#policies.get(platformId)?.content;
  }
}

function requireAudience(audiences: ControlFilesOptions['audiences'], platformId: number): string {
  const audience = audiences?.get(platformId);
  if (audience !== undefined) return audienceOf({ platformId, audience });
  const message = `must name the environment of account ${platformId}, because keysFile is given: its worker's PAYOUT_AUDIENCE`;
  throw new InvalidConfigError([{ field: 'audiences', message }]);
}
