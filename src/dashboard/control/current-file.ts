import { InvalidConfigError } from '../../errors.js';
import type { Logger } from '../../logger.js';

/** Pages ask often, and a key that was revoked has to be known soon. */
const READ_AGAIN_MS = 1_000;

interface CurrentFileOptions<Content> {
  /** What it is, for the log: `the keyring`. */
  readonly name: string;
  /** @throws InvalidConfigError when it cannot be used */
  readonly read: () => Content;
  /** Monotonic clock, ms. */
  readonly now: () => number;
  readonly logger: Logger;
}

/** A file as it stands now. One that cannot be used any more changes nothing: what was read before stays, and the log says so. */
export class CurrentFile<Content> {
  readonly #options: CurrentFileOptions<Content>;
  #content: Content;
  #readAt: number;
  #trouble: string | undefined;

  /** @throws InvalidConfigError when the file is missing, not trusted, or makes no sense */
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
