import { audienceOf } from '../../base/settings.js';
import { systemClock } from '../../base/clock.js';
import { type Audience, openAudience } from '../../control/keys/audience.js';
import { type BoundKeyring, type Keyring, readKeyringFile } from '../../control/keys/keyring.js';
import { type LoadedPolicy, readPolicyFile } from '../../control/policy/policy-file.js';
import { InvalidConfigError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';

interface ControlFilesOptions {
  readonly platformId: number | readonly number[];
  readonly keysFile?: string | undefined;
  /** The environment that each account's signatures must name. */
  readonly audiences?: ReadonlyMap<number, string> | undefined;
  readonly acceptUnboundUntil?: string | undefined;
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
}

/** A dashboard's keyring and policies, each as its file is now. */
export class ControlFiles {
  readonly #keyring: CurrentFile<Keyring> | undefined;
  readonly #audiences = new Map<number, Audience>();
  readonly #policies = new Map<number, CurrentFile<LoadedPolicy>>();

  /** @throws InvalidConfigError if a file is missing, untrusted or invalid */
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

  keyringOf(platformId: number): BoundKeyring | undefined {
    const audience = this.#audiences.get(platformId);
    return audience && this.#keyring?.content.for(audience);
  }

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

/** Pages read often, and a revoked key must be known soon. */
const READ_AGAIN_MS = 1_000;

interface CurrentFileOptions<Content> {
  readonly name: string;
  readonly read: () => Content;
  /** Monotonic clock, ms. */
  readonly now: () => number;
  readonly logger: Logger;
}

/** A file's current content. If it becomes unusable, the last content stays and the log says so. */
class CurrentFile<Content> {
  readonly #options: CurrentFileOptions<Content>;
  #content: Content;
  #readAt: number;
  #trouble: string | undefined;

  constructor(options: CurrentFileOptions<Content>) {
    this.#options = options;
    this.#content = options.read();
    this.#readAt = options.now();
  }

  get content(): Content {
    const now = this.#options.now();
    if (now - this.#readAt >= READ_AGAIN_MS) {
      this.#readAt = now;
      this.#readAgain();
    }
    return this.#content;
  }

  #readAgain(): void {
    const { name, read, logger } = this.#options;
    try {
      this.#content = read();
      this.#trouble = undefined;
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      if (error.message !== this.#trouble) {
        logger.error({ error: error.message }, `${name} could not be read again: the one before still counts`);
      }
      this.#trouble = error.message;
    }
  }
}
