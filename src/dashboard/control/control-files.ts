import { audienceOf } from '../../base/audience.js';
import { systemClock } from '../../base/clock.js';
import { CurrentFile } from '../../control/keys/current-file.js';
import { type BoundKeyring, type Keyring, readKeyringFile } from '../../control/keys/keyring.js';
import { type LoadedPolicy, readPolicyFile } from '../../control/policy/policy-file.js';
import { InvalidConfigError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import type { DashboardOptions } from '../dashboard-options.js';

/** A dashboard's keyring and policies, each as its file is now. */
export class ControlFiles {
  readonly #keyring: FreshFile<Keyring> | undefined;
  readonly #audiences = new Map<number, string>();
  readonly #policies = new Map<number, FreshFile<LoadedPolicy>>();

  /** @throws InvalidConfigError if a file is missing, untrusted or invalid */
  constructor({ platformId: given, keysFile, audiences, policyFiles = new Map() }: DashboardOptions, logger: Logger) {
    if (keysFile !== undefined) {
      this.#keyring = new FreshFile('the keyring', () => readKeyringFile(keysFile, 'keysFile'), logger);
    }
    for (const platformId of keysFile === undefined ? [] : [given].flat()) {
      this.#audiences.set(platformId, requireAudience(audiences, platformId));
    }
    for (const [platformId, file] of policyFiles) {
      const read = (): LoadedPolicy =>
        readPolicyFile(file, { platformId, keyring: this.#keyring?.content }, 'policyFile');
      this.#policies.set(platformId, new FreshFile(`the policy of account ${platformId}`, read, logger));
    }
  }

  keyringOf(platformId: number): BoundKeyring | undefined {
    const audience = this.#audiences.get(platformId);
    return audience === undefined ? undefined : this.#keyring?.content.for(audience);
  }

  policyOf(platformId: number): LoadedPolicy | undefined {
    return this.#policies.get(platformId)?.content;
  }
}

function requireAudience(audiences: DashboardOptions['audiences'], platformId: number): string {
  const audience = audiences?.get(platformId);
  if (audience !== undefined) return audienceOf({ platformId, audience });
  const message = `must name the environment of account ${platformId}, because keysFile is given: its worker's PAYOUT_AUDIENCE`;
  throw new InvalidConfigError([{ field: 'audiences', message }]);
}

/** Pages read often, and a revoked key must be known soon. */
const READ_AGAIN_MS = 1_000;

/** Reads the file again when its content is asked for. */
class FreshFile<Content> {
  readonly #name: string;
  readonly #logger: Logger;
  readonly #file: CurrentFile<Content>;
  #readAt = systemClock.now();

  constructor(name: string, read: () => Content, logger: Logger) {
    this.#name = name;
    this.#logger = logger;
    this.#file = new CurrentFile(read);
  }

  get content(): Content {
    const now = systemClock.now();
    if (now - this.#readAt >= READ_AGAIN_MS) {
      this.#readAt = now;
      const { trouble } = this.#file;
      if (!this.#file.reload() && this.#file.trouble !== trouble) {
        const { trouble: error } = this.#file;
        this.#logger.error({ error }, `${this.#name} could not be read again: the one before still counts`);
      }
    }
    return this.#file.content;
  }
}
